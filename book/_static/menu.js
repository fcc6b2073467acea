// The menu of downloads says what each of its entries is, and offers the whole book where the build knows of one
// (downloads.js, which tools/website/downloads.py writes).
document.addEventListener("DOMContentLoaded", () => {
  const menu = document.querySelector(".dropdown-download-buttons .dropdown-menu");
  if (!menu) return;
  const isNotebook = /\/notebooks\//.test(location.pathname);
  const names = {
    ".btn-download-source-button": isNotebook ? "This notebook (.ipynb)" : "The source of this page (.md)",
    ".btn-download-pdf-button": "Print this page",
  };
  for (const [entry, name] of Object.entries(names)) {
    const text = menu.querySelector(`${entry} .btn__text-container`);
    if (text) text.textContent = name;
  }
  menu.querySelector(".btn-download-source-button")?.setAttribute("download", "");
  const root = new URL(document.documentElement.dataset.content_root, location.href);
  for (const { name, address } of window.bookDownloads || []) {
    const item = menu.lastElementChild.cloneNode(true);
    const icon = item.querySelector(".btn__icon-container").cloneNode(true);
    const text = shared.make("span", { className: "btn__text-container" }, name);
    item.replaceChildren(shared.make("a", { className: "btn btn-sm dropdown-item", href: new URL(address, root) }, icon, text));
    menu.append(item);
  }
});
