"""Brute force: all continuations that a tiny model can write, with their exact probabilities."""

import torch
from scipy import stats

from chapters_src.transformer import Config, LanguageModel

END = 0


def tiny_model(seed, vocab_size=4, spread=0.6):
    """A language model of ours with a vocabulary that can be enumerated, token 0 being the end."""
    sizes = {"d_model": 8, "num_layers": 1, "num_heads": 2, "feed_forward_width": 8, "max_length": 16}
    model = LanguageModel(Config(vocab_size=vocab_size, tie_weights=False, **sizes)).double().eval()
    generator = torch.Generator().manual_seed(seed)
    for tensor in model.state_dict().values():
        tensor.copy_(spread * torch.randn(tensor.shape, generator=generator))
    model.head.projection.weight.data[END] = 0  # So that neither nearly all nor nearly none end at once.
    return model


@torch.no_grad()
def next_log_probabilities(model, ids, processors=()):
    """One forward over everything, without a cache; the filters are the library's processors."""
    ids = torch.tensor([ids])
    logits = model(ids, None)[:, -1]
    for processor in processors:
        logits = processor(ids, logits)
    return logits.log_softmax(dim=-1)[0].tolist()


def continuations(model, prompt, max_new_tokens, processors=()):
    """All of them: ids to log-probability. They end with the end token or are as long as they may be."""
    found, beginnings = {}, {(): 0.0}
    for length in range(1, max_new_tokens + 1):
        going_on = {}
        for ids, before in beginnings.items():
            for token, number in enumerate(next_log_probabilities(model, [*prompt, *ids], processors)):
                is_whole = token == END or length == max_new_tokens
                (found if is_whole else going_on)[(*ids, token)] = before + number
        beginnings = going_on
    return found


def p_value(drawn, log_probabilities):
    """Pearson's chi-squared test: how likely frequencies are that lie at least as far from the exact ones.

    Continuations that are expected fewer than five times are counted together; if one of probability 0 was
    drawn, the answer is 0.
    """
    counts = dict.fromkeys(log_probabilities, 0)
    for ids in drawn:
        counts[ids] += 1
    exact = {ids: torch.tensor(number).exp().item() * len(drawn) for ids, number in log_probabilities.items()}
    if any(exact[ids] == 0 and counts[ids] > 0 for ids in counts):
        return 0.0
    rare = [ids for ids in exact if exact[ids] < 5]
    often = [ids for ids in exact if exact[ids] >= 5]
    observed = [counts[ids] for ids in often] + [sum(counts[ids] for ids in rare)] * bool(rare)
    expected = [exact[ids] for ids in often] + [sum(exact[ids] for ids in rare)] * bool(rare)
    if expected[-1] < 5:  # The rare ones are rare even together.
        observed[-2:], expected[-2:] = [sum(observed[-2:])], [sum(expected[-2:])]
    assert len(expected) > 3
    return stats.chisquare(observed, expected, sum_check=False).pvalue
