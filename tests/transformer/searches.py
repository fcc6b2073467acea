"""Greedy decoding and beam search in their plainest form, on nothing but a decoding state."""

import torch


def greedy(state, max_new_tokens, end_id, padding_id):
    """Take the most probable token again and again; rows that ended are dropped from the state.

    Returns what `generate()` returns: (B, as many as the longest), padded after the end.
    """
    ids = state.next_logits.argmax(-1)
    written = [[] for _ in ids]
    alive = list(range(len(ids)))
    while True:
        for row, token in zip(alive, ids.tolist(), strict=True):
            written[row].append(token)
        going_on = [i for i, row in enumerate(alive) if written[row][-1] != end_id]
        if not going_on or len(written[alive[0]]) == max_new_tokens:
            break
        if len(going_on) < len(alive):
            rows = torch.tensor(going_on)
            state.select(rows)
            ids, alive = ids[rows], [alive[i] for i in going_on]
        ids = state.step(ids).argmax(-1)
    longest = max(map(len, written))
    return [row + [padding_id] * (longest - len(row)) for row in written]


def beam_search(state, num_beams, max_new_tokens, end_id, length_penalty):
    """Search as `generate()` does with `early_stopping=False`; a source that is done is dropped.

    Returns the best sequence of each source, without padding.
    """
    num_sources = len(state.next_logits)
    state.select(torch.arange(num_sources).repeat_interleave(num_beams))
    # For each open source: the score and the tokens of each of its beams. At first all beams are alike, so
    # only the first counts.
    beams = {i: [(0.0 if b == 0 else -1e9, []) for b in range(num_beams)] for i in range(num_sources)}
    finished = {i: [] for i in range(num_sources)}
    for length in range(1, max_new_tokens + 1):
        scores = state.next_logits.log_softmax(-1)
        vocab_size = scores.size(-1)
        rows, ids, still_open = [], [], {}
        for place, (source, running) in enumerate(beams.items()):
            own = scores[place * num_beams : (place + 1) * num_beams]
            total = own + torch.tensor([score for score, _ in running], dtype=own.dtype)[:, None]
            best = total.flatten().topk(2 * num_beams)
            going_on = []
            for rank, (score, index) in enumerate(
                zip(best.values.tolist(), best.indices.tolist(), strict=True)
            ):
                beam, token = divmod(index, vocab_size)
                tokens = [*running[beam][1], token]
                if token == end_id or length == max_new_tokens:
                    if rank < num_beams:
                        finished[source].append((score / length**length_penalty, tokens))
                elif len(going_on) < num_beams:
                    going_on.append((score, tokens, place * num_beams + beam))
            finished[source] = sorted(finished[source], reverse=True)[:num_beams]
            if length == max_new_tokens:
                continue
            worst = finished[source][-1][0] if len(finished[source]) == num_beams else -1e9
            if going_on[0][0] / length**length_penalty > worst:  # It may still get better.
                still_open[source] = [(score, tokens) for score, tokens, _ in going_on]
                rows += [row for _, _, row in going_on]
                ids += [tokens[-1] for _, tokens, _ in going_on]
        beams = still_open
        if not beams:
            break
        state.select(torch.tensor(rows))
        state.step(torch.tensor(ids))
    return [finished[source][0][1] for source in range(num_sources)]
