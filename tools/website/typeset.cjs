// Typesets formulas with MathJax: reads [{tex, display}] as JSON, writes {html: [...], css} as JSON.
// The first argument is MathJax's folder `es5`, the second the address of its fonts, seen from the style sheet.
const [, , mathjax, fontURL] = process.argv;
const formulas = JSON.parse(require("fs").readFileSync(0, "utf-8"));
console.log = () => {}; // what MathJax says is not our answer

require(mathjax + "/node-main.js")
  .init({
    loader: { load: ["input/tex", "output/chtml", "adaptors/liteDOM", "a11y/assistive-mml"] },
    chtml: { fontURL, scale: 1.2 }, // as large as the text around a formula
    startup: { typeset: false },
  })
  .then(async (MathJax) => {
    const html = [];
    for (const { tex, display } of formulas) {
      html.push(MathJax.startup.adaptor.outerHTML(await MathJax.tex2chtmlPromise(tex, { display })));
    }
    const css = MathJax.startup.adaptor.textContent(MathJax.chtmlStylesheet());
    process.stdout.write(JSON.stringify({ html, css }));
  });
