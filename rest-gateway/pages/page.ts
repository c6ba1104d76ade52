import { hash } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { GatewayResponse } from "#http";
import { escapeHtml } from "#runtime";
import { PRODUCT_ICON, PRODUCT_MARK, PRODUCT_NAME } from "./product.ts";

export type PageContent = {
  readonly title: string;
  readonly content: Html;
  /** True for a wide page for reading, rather than a form. */
  readonly isWide?: boolean;
  /** An inline script that the page works without. */
  readonly script?: string;
  /** Markup beside the content, such as navigation and scripts of this service; by default, the product's name is before it. */
  readonly before?: Html;
  readonly after?: Html;
  readonly status?: number;
  readonly headers?: GatewayResponse["headers"];
  /** Origins that the forms of this page may redirect to, too. */
  readonly formTargets?: readonly string[];
};

export type RenderPage = (page: PageContent) => GatewayResponse;

type PageOptions = {
  /** Origins that forms may redirect to: browsers apply the policy to redirects too. */
  readonly formTargets: readonly string[];
  /** Styles in addition to those of all pages. */
  readonly style?: string;
  /** True if the pages load pictures and scripts, from this service only. */
  readonly loadsFiles?: boolean;
};

/**
 * Renders pages with a strict policy: only inline styles and scripts, no framing, and no referrer to other sites,
 * because the URL may contain a token.
 */
export function makeRenderPage({ formTargets, style: ownStyle = "", loadsFiles = false }: PageOptions): RenderPage {
  const style = ["../../studio/tokens.css", "page.css"].map(readStyle).join("") + ownStyle;
  const policyFor = (targets: readonly string[]) =>
    [
      "default-src 'none'",
      `style-src ${sourceHash(style)}`,
      `form-action ${["'self'", ...targets].join(" ")}`,
      ...(loadsFiles ? ["img-src 'self' data:", "script-src 'self'", "connect-src 'self'"] : ["img-src data:"]),
      "base-uri 'none'",
      "frame-ancestors 'none'",
    ].join("; ");
  const usualPolicy = policyFor(formTargets);

  return ({
    title,
    content,
    isWide = false,
    script,
    before = PRODUCT_HEADER,
    after,
    status = 200,
    headers = {},
    ...page
  }) => ({
    status,
    headers: {
      "Content-Type": "text/html; charset=utf-8",
      "Content-Security-Policy": [
        page.formTargets ? policyFor([...formTargets, ...page.formTargets]) : usualPolicy,
        ...(script === undefined ? [] : [`script-src ${sourceHash(script)}`]),
      ].join("; "),
      // With `no-referrer`, browsers would send `Origin: null` with our own forms.
      "Referrer-Policy": "same-origin",
      ...headers,
    },
    body: `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <title>${html`${status < 400 ? title : `Error: ${title}`}`.text}</title>
    <link rel="icon" href="${PRODUCT_ICON}">
    <style>${style}</style>
  </head>
  <body>${before.text}
    <main${isWide ? ' class="wide"' : ""}>
    <h1>${html`${title}`.text}</h1>
    ${content.text}
    </main>${after?.text ?? ""}${script === undefined ? "" : `\n    <script>${script}</script>`}
  </body>
</html>
`,
  });
}

function readStyle(file: string): string {
  return readFileSync(join(import.meta.dirname, file), "utf8");
}

function sourceHash(text: string): string {
  return `'sha256-${hash("sha256", text, "base64")}'`;
}

export function seeOther(location: string, headers: GatewayResponse["headers"] = {}): GatewayResponse {
  return { status: 303, headers: { Location: location, ...headers }, body: null };
}

/** HTML markup. All other text is escaped. */
export class Html {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

/** The product's mark, beside text that names it. */
export const MARK = new Html(PRODUCT_MARK.replace("<svg ", '<svg class="mark" '));

const PRODUCT_HEADER = html`<header class="product">${MARK} ${PRODUCT_NAME}</header>`;

type HtmlPart = Html | readonly Html[] | string | number | null | undefined;

/** html`<p>${name}</p>` */
export function html(strings: TemplateStringsArray, ...parts: readonly HtmlPart[]): Html {
  return new Html(strings.reduce((text, string, index) => text + toMarkup(parts[index - 1]) + string));
}

function toMarkup(part: HtmlPart): string {
  if (part === null || part === undefined) return "";
  if (part instanceof Html) return part.text;
  if (typeof part === "object") return part.map(toMarkup).join("");
  return escapeHtml(String(part));
}
