import { ServiceError } from "../api/http.ts";
import { type Children, html } from "../html.ts";
import { texts } from "../texts.ts";
import { Button } from "./button.ts";

type NoticeProps = {
  readonly kind?: "info" | "success" | "warning" | "error";
  readonly title?: string;
  /** An error, shown with its code and hint. */
  readonly error?: Error | null;
  /** True if the children contain the instructions. */
  readonly hidesHint?: boolean;
  readonly onRetry?: () => void;
  readonly children?: Children;
};

/** A message within the page: an error of the service, or information. */
export function Notice({ kind = "info", title, error, hidesHint = false, onRetry, children }: NoticeProps) {
  return html`
    <div class=${`notice ${kind}`} role=${kind === "error" ? "alert" : "note"}>
      ${title && html`<p class="notice-title">${title}</p>`}
      ${error && html`<${ErrorText} error=${error} hidesHint=${hidesHint} />`}
      ${children}
      ${onRetry && html`<${Button} size="small" onClick=${onRetry}>${texts.components.retry}<//>`}
    </div>
  `;
}

function ErrorText({ error, hidesHint }: { error: Error; hidesHint: boolean }) {
  if (!(error instanceof ServiceError)) return html`<p>${error.message}</p>`;
  return html`
    <p>${error.message}</p>
    ${error.details && html`<p>${error.details}</p>`}
    ${!hidesHint && error.hint && html`<p>${error.hint}</p>`}
    <p class="quiet">${texts.components.errorCode(error.code)}</p>
  `;
}
