"""What a configuration refuses: it names the value and what would do."""

import dataclasses
import json

import numpy as np
import pytest
from small_models import KINDS, POSITIONS, small_config

from chapters_src.transformer.configuration import ACTIVATIONS, NORMS, Config
from chapters_src.transformer.configuration import POSITIONS as KNOWN_POSITIONS

REFUSED = [
    ({"vocab_size": 0}, "vocab_size=0 .*at least 1"),
    ({"d_model": 16.0}, r"d_model=16\.0 .*integer"),
    ({"num_layers": -1}, "num_layers=-1 .*at least 1"),
    ({"num_heads": 0}, "num_heads=0 .*at least 1"),
    ({"feed_forward_width": "64"}, "feed_forward_width='64' .*integer"),
    ({"max_length": 0}, "max_length=0 .*at least 1"),
    ({"num_layers": True}, "num_layers=True .*integer"),
    ({"num_token_types": 1.5}, r"num_token_types=1\.5 .*integer, at least 0"),
    ({"cross_attention": "no"}, "cross_attention='no' .*True or False"),
    ({"norm_first": 1}, "norm_first=1 .*True or False"),
    ({"scale_embedding": 0}, "scale_embedding=0 .*True or False"),
    ({"num_layers": np.True_}, "num_layers=np.True_ .*integer"),
    ({"num_heads": 3}, "num_heads=3 .*divisor of d_model=16"),
    ({"num_key_value_heads": 3}, "num_key_value_heads=3 .*divisor of num_heads=4"),
    ({"num_key_value_heads": 0}, "num_key_value_heads=0 .*integer, at least 1"),
    ({"num_key_value_heads": 8}, "num_key_value_heads=8 .*divisor of num_heads=4"),
    ({"num_token_types": -1}, "num_token_types=-1 .*at least 0"),
    (
        {"positions": "sinus"},
        "positions='sinus' .*one of learned, sinusoidal, sinusoidal_concatenated, rotary, none",
    ),
    ({"norm": "batch"}, "norm='batch' .*one of layer, rms"),
    ({"activation": "swish"}, "activation='swish' .*one of relu, gelu, gelu_tanh, silu"),
    ({"rotary_base": 1.0}, r"rotary_base=1\.0 .*greater than 1"),
    ({"rotary_base": float("inf")}, "rotary_base=inf .*greater than 1"),
    ({"head_width": 0}, "head_width=0 .*integer, at least 1"),
    ({"positions": "rotary", "head_width": 5}, "head_dim=5 .*even"),
    ({"query_key_norm": 1}, "query_key_norm=1 .*True or False"),
    ({"norm_output": True, "norm_first": False}, "norm_output=True .*unless norm_first is True"),
    ({"sliding_window": 3}, "sliding_window=3 .*only if, there are sliding_layers"),
    ({"sliding_layers": (0,)}, "sliding_window=None .*only if, there are sliding_layers"),
    ({"sliding_window": 0, "sliding_layers": (0,)}, "sliding_window=0 .*at least 1"),
    ({"sliding_window": 3, "sliding_layers": (0, 2)}, r"sliding_layers=\(0, 2\) .*from 0 to 1"),
    ({"sliding_window": 3, "sliding_layers": (1, 0)}, r"sliding_layers=\(1, 0\) .*ascending"),
    ({"sliding_window": 3, "sliding_layers": (1, 1)}, r"sliding_layers=\(1, 1\) .*ascending"),
    ({"sliding_window": 3, "sliding_layers": (True,)}, "a number in sliding_layers=True .*integer"),
    ({"sliding_window": 3, "sliding_layers": 1}, "sliding_layers=1 .*a tuple"),
    ({"sliding_rotary_base": 1.0}, r"sliding_rotary_base=1\.0 .*greater than 1, or None"),
    ({"norm_epsilon": -1e-5}, "norm_epsilon=-1e-05 .*at least 0"),
    ({"norm_epsilon": 1.0}, r"norm_epsilon=1\.0 .*less than 1"),
    ({"dropout": 1.0}, r"dropout=1\.0 .*at least 0 and less than 1"),
    ({"dropout": -0.1}, r"dropout=-0\.1 .*at least 0 and less than 1"),
    ({"attention_dropout": 1.5}, r"attention_dropout=1\.5 .*at least 0 and less than 1"),
    ({"positions": "rotary", "d_model": 12}, "head_dim=3 .*even"),
    ({"d_model": 15, "num_heads": 3}, "d_model=15 .*even"),
    ({"d_model": 15, "num_heads": 3, "positions": "sinusoidal_concatenated"}, "d_model=15 .*even"),
]


@pytest.mark.parametrize(("changes", "message"), REFUSED, ids=[str(changes) for changes, _ in REFUSED])
def test_what_does_not_fit_is_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        small_config(**changes)


@pytest.mark.parametrize(
    "changes",
    [
        {"num_heads": 1}, {"num_heads": 16}, {"num_key_value_heads": 1}, {"num_key_value_heads": 4},
        {"vocab_size": None, "max_length": None}, {"norm_epsilon": 0.0}, {"dropout": 0.0}, {"dropout": 0.9},
        {"d_model": 15, "num_heads": 3, "positions": "learned"}, *KINDS.values(),
    ],
)  # fmt: skip
def test_what_fits_is_kept(changes):
    config = small_config(**changes)
    assert all(getattr(config, name) == value for name, value in changes.items())
    assert config.head_dim == changes.get("head_width", config.d_model // config.num_heads)


def test_numbers_and_booleans_of_numpy_are_those_of_python():
    """A size that NumPy computed is a size; and the configuration can be written as JSON."""
    sizes = {"num_layers": 2, "num_key_value_heads": 2, "num_token_types": 0, "max_length": 20}
    switches = {"norm_first": False, "gated": True, "scale_embedding": True}
    for kind in (np.int64, np.int32, np.uint8):
        given = {name: kind(value) for name, value in sizes.items()}
        config = small_config(**given, **{name: np.bool_(value) for name, value in switches.items()})
        assert config == small_config(**sizes, **switches)
        assert Config(**json.loads(json.dumps(dataclasses.asdict(config)))) == config


def test_layers_come_back_from_json_as_a_tuple():
    config = small_config(sliding_window=np.int64(3), sliding_layers=[np.int64(1)])
    assert config.sliding_layers == (1,)
    assert Config(**json.loads(json.dumps(dataclasses.asdict(config)))) == config


def test_a_configuration_does_not_change_but_can_be_copied_with_changes():
    config = small_config()
    with pytest.raises(dataclasses.FrozenInstanceError):
        config.num_layers = 3
    assert dataclasses.replace(config, num_layers=3) == small_config(num_layers=3) != config
    with pytest.raises(ValueError, match="num_layers=0"):
        dataclasses.replace(config, num_layers=0)


@pytest.mark.parametrize("positions", POSITIONS)
def test_tokens_are_scaled_where_sinusoids_would_drown_them_unless_it_is_said(positions):
    scaled = small_config(positions=positions).scales_embedding
    assert scaled == (positions in ("sinusoidal", "sinusoidal_concatenated"))
    for scaled in (True, False):
        assert small_config(positions=positions, scale_embedding=scaled).scales_embedding is scaled


def test_each_choice_is_tested():
    assert list(KNOWN_POSITIONS) == POSITIONS
    assert set(NORMS) == {"layer", "rms"}
    assert set(ACTIVATIONS) == {"relu", "gelu", "gelu_tanh", "silu"}
