// The panels of a phone close when an entry is tapped, since what is asked for lies behind them, or by a button; the
// menu opens where the reader is. A line at the top shows how far a long page has been read.
document.addEventListener("DOMContentLoaded", () => {
  for (const panel of document.querySelectorAll("dialog[id$='sidebar-modal']")) {
    const button = shared.button("×", () => panel.close(), { className: "panel-close", "aria-label": "Close" });
    new MutationObserver(() => {
      if (!panel.open) return;
      panel.prepend(button); // the theme has just moved the side bar into the panel
      const here = [...panel.querySelectorAll("a.current, li.current > a, a.active")].at(-1);
      here?.scrollIntoView({ block: "center", behavior: "instant" });
    }).observe(panel, { attributeFilter: ["open"] });
    panel.addEventListener("click", (event) => {
      const link = event.target.closest("a[href]");
      if (!link || link.pathname !== location.pathname) return;
      const target = document.getElementById(decodeURIComponent(link.hash.slice(1)));
      // The theme gives the focus back to the button; whoever uses a keyboard wants to be at the target.
      panel.addEventListener("close", () => setTimeout(() => {
        const heading = target?.querySelector("h1, h2, h3, h4") || target;
        if (!heading) return;
        heading.tabIndex = -1;
        heading.focus({ preventScroll: true });
        heading.scrollIntoView();
      }), { once: true });
      panel.close();
    });
  }

  // Formulas are no tab stops, unless one is wider than its place and has to be scrolled.
  const reach = (box) => {
    const formula = box.querySelector("mjx-container");
    if (formula?.scrollWidth > formula?.clientWidth + 1) formula.tabIndex = 0;
    else formula?.removeAttribute("tabindex");
  };
  const sizes = new ResizeObserver((entries) => entries.forEach((entry) => reach(entry.target)));
  document.querySelectorAll("main div.math").forEach((box) => sizes.observe(box));

  // Where a box goes on to the right its edge fades (book.css). Not every browser can tell by itself.
  if (!CSS.supports("animation-timeline", "scroll()")) {
    const fade = (box) => box.classList.toggle("goes-on", box.scrollLeft < box.scrollWidth - box.clientWidth - 1);
    const fits = new ResizeObserver((entries) => entries.forEach(({ target }) => fade(target)));
    const wide = "div.cell_output .text_html, div.cell_output .drawing, .pst-scrollable-table-container, div.highlight pre";
    document.querySelectorAll(`article :is(${wide})`).forEach((box) => {
      box.addEventListener("scroll", () => fade(box), { passive: true });
      fits.observe(box);
    });
  }

  // How far one has read. Short pages show it by their scroll bar.
  const LONG = 6; // windows
  const line = shared.make("div", { className: "reading-progress", "aria-hidden": "true" });
  document.body.append(line);
  const measure = () => {
    const { scrollHeight, clientHeight, scrollTop } = document.documentElement;
    const share = scrollHeight > LONG * clientHeight ? scrollTop / (scrollHeight - clientHeight) : 0;
    line.style.transform = `scaleX(${share.toFixed(4)})`;
  };
  addEventListener("scroll", measure, { passive: true });
  addEventListener("resize", measure);
  measure();
});
