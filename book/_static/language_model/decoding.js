// Decoding, as chapter 13 tells it: temperature, the filters of sampling, drawing, and beam search.
(() => {
  const languageModel = (window.languageModel ||= {});

  // --- From logits to probabilities.

  // A filter gets logits and returns new ones, with -Infinity for what is ruled out.

  // Below 1 the distribution gets sharper, above 1 flatter.
  const withTemperature = (logits, temperature) => logits.map((logit) => logit / temperature);

  // Keep the k most probable tokens, and those that tie with the last of them.
  function topKFilter(logits, k) {
    const last = Float64Array.from(logits).sort().at(-Math.min(k, logits.length));
    return logits.map((logit) => (logit < last ? -Infinity : logit));
  }

  // Keep the nucleus: the smallest set of most probable tokens whose total probability is at least p. Of equal
  // tokens the first are kept.
  function topPFilter(logits, p) {
    const probabilities = softmax(logits);
    const ascending = [...probabilities.keys()].sort((a, b) => logits[a] - logits[b] || b - a);
    const most = ascending.pop(); // it stays in any case
    const kept = logits.slice();
    let sum = 0;
    for (const id of ascending) {
      sum += probabilities[id];
      if (sum > 1 - p) break;
      kept[id] = -Infinity;
    }
    kept[most] = logits[most];
    return kept;
  }

  // Keep the tokens whose probability is at least a share of the highest one.
  function minPFilter(logits, share) {
    const probabilities = softmax(logits);
    const least = share * highest(probabilities);
    return logits.map((logit, id) => (probabilities[id] < least ? -Infinity : logit));
  }

  // The probabilities of the next token: temperature first, then the filters, in the order of the Transformers
  // library. Temperature 0 is greedy; topK 0, topP 1 and minP 0 cut nothing.
  function probabilities(logits, { temperature = 1, topK = 0, topP = 1, minP = 0 } = {}) {
    check({ temperature, topK, topP, minP });
    let filtered = Float64Array.from(logits);
    if (temperature === 0) return oneHot(filtered.indexOf(highest(filtered)), filtered.length);
    filtered = withTemperature(filtered, temperature);
    if (topK > 0) filtered = topKFilter(filtered, topK);
    if (topP < 1) filtered = topPFilter(filtered, topP);
    if (minP > 0) filtered = minPFilter(filtered, minP);
    return softmax(filtered);
  }

  // --- Sampling.

  // Draw a token: a number from 0 to 1 falls into the stretch of one token, which is as long as its probability.
  // `random` returns the number.
  function draw(probabilities, random = Math.random) {
    let left = random();
    let last = -1;
    for (let id = 0; id < probabilities.length; id++) {
      if (probabilities[id] === 0) continue;
      last = id;
      left -= probabilities[id];
      if (left < 0) break;
    }
    return last; // the last possible one, if rounding has left a rest
  }

  // --- Beam search.

  // Follow the best beginnings at once, and return the tree that grows: for each step a list of nodes. A node's
  // `parent` is its place in the step before (-1: the prompt), `total` the sum of the log-probabilities so far,
  // `score` their mean; a `finished` one ends with the end token and goes no further. The rules are those of
  // chapter 13 and of the library. `onStep(nodes, number)` gets each step, and is waited for.
  async function beams(model, ids, { numBeams = 4, numSteps = 10, endId = model.config.endId, onStep } = {}) {
    const memory = model.emptyMemory();
    let open = [{ place: -1, ids: [], total: 0, memory, logits: model.read(ids, memory).logits }];
    const steps = [];
    let hypotheses = [];
    for (let number = 1; number <= numSteps && open.length; number++) {
      const isLast = number === numSteps;
      const candidates = bestCandidates(open, 2 * numBeams).map((candidate, rank) => ({
        ...candidate,
        rank,
        ids: [...candidate.beam.ids, candidate.id],
        finished: candidate.id === endId,
      }));
      const ended = candidates.filter(({ finished, rank }) => (finished || isLast) && rank < numBeams);
      const going = isLast ? [] : candidates.filter(({ finished }) => !finished).slice(0, numBeams);
      hypotheses = [...hypotheses, ...ended].sort((a, b) => score(b) - score(a)).slice(0, numBeams);
      const nodes = [...new Set([...going, ...ended])].sort((a, b) => a.rank - b.rank);
      steps.push(nodes.map(toNode));
      await onStep?.(steps.at(-1), number - 1);
      if (isDone(going, hypotheses, numBeams)) break;
      open = going.map((candidate) => followed(model, candidate, nodes.indexOf(candidate)));
    }
    return { steps, hypotheses: hypotheses.map(toHypothesis) };
  }

  // The best continuations of all beams, the best first; of equal ones the first.
  function bestCandidates(open, count) {
    const best = [];
    for (const beam of open) {
      const logProbabilities = logSoftmax(beam.logits);
      for (let id = 0; id < logProbabilities.length; id++) {
        const total = beam.total + logProbabilities[id];
        if (best.length === count && total <= best.at(-1).total) continue;
        const place = best.findIndex((other) => other.total < total);
        best.splice(place < 0 ? best.length : place, 0, {
          beam,
          id,
          total,
          logProbability: logProbabilities[id],
        });
        best.length = Math.min(best.length, count);
      }
    }
    return best;
  }

  // A candidate that has become a beam: the model reads its token, with a memory of its own.
  function followed(model, { beam, id, ids, total }, place) {
    const memory = beam.memory.copy();
    return { place, ids, total, memory, logits: model.read([id], memory).logits };
  }

  // No beam is left, or the best one, ended now, would not beat any of the hypotheses.
  function isDone(going, hypotheses, numBeams) {
    return (
      going.length === 0 || (hypotheses.length === numBeams && score(going[0]) <= score(hypotheses.at(-1)))
    );
  }

  const score = ({ total, ids }) => total / ids.length;

  function toNode(candidate) {
    const { beam, id, logProbability, total, finished } = candidate;
    return { parent: beam.place, id, logProbability, total, score: score(candidate), finished };
  }

  function toHypothesis(candidate) {
    return {
      ids: candidate.ids,
      score: score(candidate),
      total: candidate.total,
      finished: candidate.finished,
    };
  }

  // --- What they share.

  const highest = (numbers) => numbers.reduce((a, b) => Math.max(a, b), -Infinity);

  function softmax(logits) {
    const largest = highest(logits);
    const exponentials = Float64Array.from(logits).map((logit) => Math.exp(logit - largest));
    const sum = exponentials.reduce((a, b) => a + b, 0);
    return exponentials.map((exponential) => exponential / sum);
  }

  function logSoftmax(logits) {
    const largest = highest(logits);
    const logSum = Math.log(logits.reduce((sum, logit) => sum + Math.exp(logit - largest), 0));
    return Float64Array.from(logits).map((logit) => logit - largest - logSum);
  }

  function oneHot(id, length) {
    const probabilities = new Float64Array(length);
    probabilities[id] = 1;
    return probabilities;
  }

  function check({ temperature, topK, topP, minP }) {
    if (!(temperature >= 0 && temperature < Infinity))
      throw new RangeError(`temperature ${temperature} has to be 0, for greedy, or more`);
    if (!(Number.isInteger(topK) && topK >= 0))
      throw new RangeError(`top-k ${topK} has to be a whole number; 0 keeps all tokens`);
    if (!(topP > 0 && topP <= 1)) throw new RangeError(`top-p ${topP} has to be above 0 and at most 1`);
    if (!(minP >= 0 && minP <= 1)) throw new RangeError(`min-p ${minP} has to be from 0 to 1`);
  }

  Object.assign(languageModel, { probabilities, draw, beams });
})();
