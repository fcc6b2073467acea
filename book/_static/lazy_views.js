// Attention views are drawn when they come near the window, or when the page is printed: the tens of thousands
// of lines of a chapter would hold up a phone that only wants to read its first section. The build has made
// their scripts data (`text/view`); here they become scripts again, all of one view in their order.
document.addEventListener("DOMContentLoaded", () => {
  const waiting = new Map(); // what a code cell shows, and the scripts that draw it
  document.querySelectorAll('script[type="text/view"]').forEach((script) => {
    const output = script.closest(".cell_output") || script.parentElement;
    waiting.set(output, [...(waiting.get(output) || []), script]);
  });
  const draw = (output) => {
    const scripts = waiting.get(output) || [];
    waiting.delete(output);
    scripts.forEach((data) => {
      const script = document.createElement("script");
      script.textContent = data.textContent;
      data.replaceWith(script); // it runs now
    });
  };
  const observer = new IntersectionObserver(
    (entries) =>
      entries.filter((entry) => entry.isIntersecting).forEach(({ target }) => {
        observer.unobserve(target);
        draw(target);
      }),
    { rootMargin: "800px 0px" },
  );
  waiting.forEach((_, output) => observer.observe(output));
  // Before others make the page ready for paper, or when they say that they are about to.
  const drawAll = () => [...waiting.keys()].forEach(draw);
  addEventListener("beforeprint", drawAll, { capture: true });
  addEventListener("book:draw-all", drawAll);
});
