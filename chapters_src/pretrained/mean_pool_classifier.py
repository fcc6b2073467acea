"""A classifier with mean pooling, as a model of the Transformers library.

It is the classifier of chapter 05. The library's own classifiers for BERT use the vector of `[CLS]`.
`save_pretrained` copies this file to the weights, so that `pipeline` can load the folder without this
package, with `trust_remote_code=True`. Therefore the file imports nothing from the package.
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
    """The configuration of the body, and the names of the classes (`id2label`, `label2id`).

    Args:
        body: the configuration of the body, as returned by its `to_dict()`.
        kwargs: for `PretrainedConfig`.
    """

    model_type = "mean_pool_classifier"

    def __init__(self, body: dict | None = None, **kwargs):
        self.body = body or {"model_type": "bert"}
        super().__init__(**kwargs)


class MeanPoolClassifier(PreTrainedModel):
    """A model of the library, the mean over its tokens without padding, and a linear head.

    Args:
        config: the configuration of the body, and the classes.
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
        """Compute the logits of the classes for each text.

        Args:
            input_ids: (B, T).
            attention_mask: 1 for a token, 0 for padding, (B, T).
            labels: classes as integers from 0, (B,), or None.
            unused: other outputs of tokenizers.

        Returns:
            `logits`, (B, num_classes), and `loss`, the mean cross-entropy in nats; None without labels.
        """
        states = self.body(input_ids, attention_mask).last_hidden_state
        is_token = attention_mask.bool().unsqueeze(-1)
        total = states.masked_fill(~is_token, 0.0).sum(dim=1, dtype=torch.float32)
        pooled = (total / is_token.sum(dim=1)).to(states.dtype)
        logits = self.head(self.dropout(pooled))
        loss = None if labels is None else F.cross_entropy(logits, labels)
        return SequenceClassifierOutput(loss=loss, logits=logits)


def register() -> None:
    """Register the classifier with the library, so that it is found here by name and elsewhere by file."""
    AutoConfig.register(MeanPoolConfig.model_type, MeanPoolConfig, exist_ok=True)
    AutoModelForSequenceClassification.register(MeanPoolConfig, MeanPoolClassifier, exist_ok=True)
    MeanPoolConfig.register_for_auto_class()
    MeanPoolClassifier.register_for_auto_class("AutoModelForSequenceClassification")
