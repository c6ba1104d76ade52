import { html } from "../html.ts";

/** The page that loads Studio names the product, and has its mark as its icon. */
export function productName(): string {
  return document.querySelector<HTMLMetaElement>("meta[name=application-name]")!.content;
}

/** The product's mark, beside text that names it. */
export function ProductMark() {
  const { href } = document.querySelector<HTMLLinkElement>("link[rel=icon]")!;
  return html`<img class="product-mark" src=${href} width="18" height="18" alt="" />`;
}
