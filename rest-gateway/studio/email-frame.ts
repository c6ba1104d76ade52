import { hash } from "node:crypto";
import type { GatewayResponse } from "#http";

export const EMAIL_FRAME_PATH = "/studio/app/email-frame.html";

/** Shows the HTML that the page around sends. Scripts in it do not run, and links lead nowhere. */
const SCRIPT = `addEventListener("message", ({ source, data }) => {
  if (source !== parent) return;
  const { documentElement } = new DOMParser().parseFromString(String(data), "text/html");
  document.documentElement.replaceWith(document.adoptNode(documentElement));
});
addEventListener("click", (event) => event.preventDefault(), true);`;

/** A document of its own, because the e-mail has styles that the policy of Studio forbids. It shares neither origin nor scripts with Studio. */
const POLICY = [
  "default-src 'none'",
  `script-src 'sha256-${hash("sha256", SCRIPT, "base64")}'`,
  "style-src 'unsafe-inline'",
  "img-src https: data:",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'self'",
  "sandbox allow-scripts",
].join("; ");

/** The document in which Studio shows an e-mail. */
export const EMAIL_FRAME: GatewayResponse = {
  status: 200,
  headers: {
    "Content-Type": "text/html; charset=utf-8",
    "Content-Security-Policy": POLICY,
    "X-Frame-Options": "SAMEORIGIN",
    "Cache-Control": "no-cache",
  },
  body: `<!doctype html><html lang="en"><head><title>E-mail</title><script>${SCRIPT}</script></head><body></body></html>`,
};
