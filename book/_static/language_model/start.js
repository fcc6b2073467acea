// Where a page has a place for the language model: buttons that load it. Before a click nothing else is loaded.
document.currentScript.dataset.folder = document.currentScript.src.replace(/[^/]*$/, "");
(({ folder }) => {
  const SCRIPTS = ["tokenizer.js", "model.js", "kernels.js", "decoding.js", "checkpoint.js", "view.js", "panels.js"];

  const SHELL = `<p class="lm-choice"><button type="button" class="lm-load">Load the model (8.7 MB)</button>
    <progress max="1" value="0" aria-label="loading the model" hidden></progress></p>
    <details class="lm-own"><summary>Use a checkpoint of your own</summary>
    <p>A folder that a recipe of this book wrote, with <code>config.json</code>, <code>model.safetensors</code> and
    <code>tokenizer.json</code>. It is read here, and sent nowhere.</p>
    <p class="lm-files"><label>Its folder <input type="file" webkitdirectory></label>
    <label>or its three files <input type="file" multiple accept=".json,.safetensors"></label></p></details>
    <p class="lm-error" role="alert"></p><p class="lm-status" role="status"></p>`;

  function prepare(place) {
    const view = shared.make("section", { className: "model-view", "aria-label": "The language model at work", innerHTML: SHELL });
    place.append(view);
    place.classList.add("ready");
    const [button, progress, error, status] = [".lm-load", "progress", ".lm-error", ".lm-status"].map((name) => view.querySelector(name));

    async function open(files) {
      error.textContent = "";
      status.textContent = "Loading the model.";
      button.disabled = true;
      progress.hidden = false;
      try {
        for (const name of SCRIPTS) await shared.load(folder + name); // one after the other
        const tell = (fraction) => (progress.value = fraction);
        const model = await (files ? languageModel.fromFiles(files) : languageModel.load(tell));
        languageModelView.open(place, view, model);
      } catch (problem) {
        error.textContent = problem.message;
        status.textContent = "";
      }
      button.disabled = false;
      progress.hidden = true;
    }
    button.addEventListener("click", () => open(null));
    view.querySelectorAll("input").forEach((input) => input.addEventListener("change", () => {
      const files = [...input.files];
      input.value = ""; // so that the same files can be chosen again, mended
      if (files.length) open(files);
    }));
  }
  document.addEventListener("DOMContentLoaded", () => document.querySelectorAll("div.language-model").forEach(prepare));
})(document.currentScript.dataset);
