import { useEffect, useRef } from "preact/hooks";
import { html } from "../html.ts";

const DOCUMENT = "/studio/app/email-frame.html";

type EmailFrameProps = { readonly title: string; readonly content: string };

/** Shows the HTML of an e-mail in a frame that has neither the scripts nor the origin of Studio. */
export function EmailFrame({ title, content }: EmailFrameProps) {
  const frame = useRef<HTMLIFrameElement>(null);
  // The document has no origin to send to.
  const show = () => frame.current?.contentWindow?.postMessage(content, "*");
  useEffect(show, [content]);
  return html`<iframe class="email-frame" title=${title} ref=${frame} src=${DOCUMENT} sandbox="allow-scripts" onLoad=${show} />`;
}
