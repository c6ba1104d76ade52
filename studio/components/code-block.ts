import { useState } from "preact/hooks";
import { html } from "../html.ts";
import { texts } from "../texts.ts";
import { Button } from "./button.ts";

type CodeBlockProps = { readonly text: string; readonly label: string; readonly wrap?: boolean };

const CONFIRMED_MS = 1500;

/** Text to read and copy. */
export function CodeBlock({ text, label, wrap = false }: CodeBlockProps) {
  return html`
    <div class="code-block">
      <pre tabindex="0" role="group" aria-label=${label} class=${wrap ? "wrap" : ""}><code>${text}</code></pre>
      <${CopyButton} text=${text} />
    </div>
  `;
}

type CopyButtonProps = { readonly text: string; readonly label?: string };

export function CopyButton({ text, label = texts.components.copy }: CopyButtonProps) {
  const [isCopied, setCopied] = useState(false);
  const copy = async () => {
    await navigator.clipboard.writeText(text);
    setCopied(true);
    setTimeout(() => setCopied(false), CONFIRMED_MS);
  };
  // Browsers have a clipboard only for pages that were sent by HTTPS or from this machine.
  if (!navigator.clipboard) return null;
  return html`
    <${Button} size="small" class="copy" icon=${isCopied ? "check" : "copy"} onClick=${copy}>
      ${isCopied ? texts.components.copied : label}
    <//>
  `;
}
