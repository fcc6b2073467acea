"""A classifier that the library loads: a pretrained body, the mean over the tokens, a linear head.

The library's own classifiers of BERT's kind read the vector of `[CLS]`. This one is chapter 05's, as a model
of the library: `save_pretrained` puts this file beside the weights, so that `pipeline` can load the folder
where this package is missing, with `trust_remote_code=True`. So the file imports nothing of ours.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from transformers import (
    AutoConfig,
    AutoModel,
    AutoModelForSequenceClassification,
    PretrainedConfig,
    PreTrainedModel,
)
from transformers.modeling_outputs import SequenceClassifierOutput


class MeanPoolConfig(PretrainedConfig):
    """What the body is, and the names of the classes (`id2label`, `label2id`).

    Args:
        body: the configuration of the body, as its `to_dict()` gives it.
        kwargs: what every configuration of the library takes.
    """

    model_type = "mean_pool_classifier"

    def __init__(self, body: dict | None = None, **kwargs):
        self.body = body or {"model_type": "bert"}
        super().__init__(**kwargs)


class MeanPoolClassifier(PreTrainedModel):
    """A body of the library, the mean over the tokens, and a linear head. Padding does not count.

    Args:
        config: the body's configuration, and the classes.
    """

    config_class = MeanPoolConfig
    base_model_prefix = "body"

    def __init__(self, config: MeanPoolConfig):
        super().__init__(config)
        body = AutoConfig.for_model(**config.body)
        self.body = AutoModel.from_config(body)
        self.dropout = nn.Dropout(0.1)
        self.head = nn.Linear(body.hidden_size, config.num_labels)
        self.post_init()

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor, labels: Tensor | None = None, **unused
    ) -> SequenceClassifierOutput:
        """Give one row of logits for each text.

        Args:
            input_ids: (B, T).
            attention_mask: 1 for a token, 0 for padding, (B, T).
            labels: classes as integers from 0, (B,), or None.
            unused: what tokenizers give and the mean does not need.

        Returns:
            `logits`, (B, num_classes), and `loss`, their mean cross-entropy in nats; None without labels.
        """
        states = self.body(input_ids, attention_mask).last_hidden_state
        is_token = attention_mask.bool().unsqueeze(-1)
        total = states.masked_fill(~is_token, 0.0).sum(dim=1, dtype=torch.float32)
        pooled = (total / is_token.sum(dim=1)).to(states.dtype)
        logits = self.head(self.dropout(pooled))
        loss = None if labels is None else F.cross_entropy(logits, labels)
        return SequenceClassifierOutput(loss=loss, logits=logits)


def register() -> None:
    """Make the library know the classifier: here by its name, elsewhere by this file beside the weights."""
    AutoConfig.register(MeanPoolConfig.model_type, MeanPoolConfig, exist_ok=True)
    AutoModelForSequenceClassification.register(MeanPoolConfig, MeanPoolClassifier, exist_ok=True)
    MeanPoolConfig.register_for_auto_class()
    MeanPoolClassifier.register_for_auto_class("AutoModelForSequenceClassification")
