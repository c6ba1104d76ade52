import { randomBytes } from "node:crypto";
import { compressedResponse, dispatchMethod, type GatewayHandler, type GatewayResponse, notFound } from "#http";
import { html, PRODUCT_ICON, PRODUCT_NAME } from "#rest-gateway/pages";
import { EMAIL_FRAME, EMAIL_FRAME_PATH } from "./email-frame.ts";
import { STUDIO_PATH, StudioFiles } from "./studio-files.ts";

/** A path of a file, not of a page. */
const FILE_PATH = /^\/studio\/app(@[^/]*)?\//;
/** The part of Studio that a path shows: `/studio/tables/public/films` -> `tables`. */
const PART = /^\/studio\/(?<part>[a-z]+)(\/|$)/;

/** Serves `/studio`: a page that runs in the browser, as a client of the interfaces. Nothing is read before the first request. */
export function studioFolder(): Readonly<Record<string, GatewayHandler>> {
  let files: StudioFiles | undefined;
  const get: GatewayHandler = async ({ path, headers }) => {
    if (path === EMAIL_FRAME_PATH) return EMAIL_FRAME;
    files ??= new StudioFiles();
    if (!FILE_PATH.test(path)) return shell(files, path);
    const file = await files.find(path);
    if (file === null) throw notFound();
    const response = compressedResponse(file.content, headers);
    const caching = file.isLasting ? "public, max-age=31536000, immutable" : "no-cache";
    return { ...response, headers: { ...response.headers, "Cache-Control": caching } };
  };
  const methods = new Map([["GET", get]]);
  return { [STUDIO_PATH]: (request) => dispatchMethod(methods, request) };
}

/** Returns one page for all paths: its script shows the part that the path names. */
async function shell(files: StudioFiles, path: string): Promise<GatewayResponse> {
  const part = PART.exec(path)?.groups?.part ?? "tables";
  const { main, modules, styles } = await files.pageFiles(part);
  const nonce = randomBytes(18).toString("base64");
  return {
    status: 200,
    headers: {
      "Content-Type": "text/html; charset=utf-8",
      "Content-Security-Policy": securityPolicy(nonce),
      "Cross-Origin-Opener-Policy": "same-origin",
      "Cross-Origin-Resource-Policy": "same-origin",
      "X-Frame-Options": "DENY",
      // Each response has its own nonce.
      "Cache-Control": "no-store",
    },
    body: html`<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <meta name="color-scheme" content="light dark">
    <meta name="application-name" content="${PRODUCT_NAME}">
    <title>Studio · ${PRODUCT_NAME}</title>
    <link rel="icon" href="${PRODUCT_ICON}">
    <link rel="stylesheet" href="${styles}" nonce="${nonce}">
    ${modules.map((module) => html`<link rel="modulepreload" href="${module}">\n    `)}
    <script type="module" src="${main}"></script>
  </head>
  <body><div id="studio"><noscript>Studio needs JavaScript.</noscript></div></body>
</html>
`.text,
  };
}

/** Allows the files and interfaces of this service only. The nonce is for the style elements of the code editor. */
function securityPolicy(nonce: string): string {
  return [
    "default-src 'none'",
    "script-src 'self'",
    `style-src 'self' 'nonce-${nonce}'`,
    // This includes WebSockets of this service.
    "connect-src 'self'",
    "img-src 'self' data:",
    "font-src 'self'",
    "frame-src 'self'",
    "base-uri 'none'",
    "form-action 'self'",
    "frame-ancestors 'none'",
  ].join("; ");
}
