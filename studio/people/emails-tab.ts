import { useState } from "preact/hooks";
import type { KeptEmail } from "#operations/admin-types";
import { useLoaded } from "../api/use-loaded.ts";
import { Button } from "../components/button.ts";
import { Notice } from "../components/notice.ts";
import { Empty, Loading } from "../components/page.ts";
import { type Children, html } from "../html.ts";
import { formatTime } from "../texts/format.ts";
import { texts } from "../texts.ts";
import { listEmails, sendSampleInvitation } from "./people-api.ts";
import { SampleDialog } from "./sample-dialog.ts";

/** Matches a link without the full stop or the bracket that ends a sentence. */
const LINK = /(https?:\/\/[^\s<>"]*[^\s<>".,;:!?)])/;

/** The e-mails that users received, in development. */
export function EmailsTab() {
  const { value, error, isLoading, reload } = useLoaded((signal) => listEmails(signal), []);
  const { emails } = texts.people;
  const [isSending, setSending] = useState(false);
  return html`
    <div class="row">
      <p class="quiet">${emails.intro}</p>
      <div class="page-actions">
        <${Button} onClick=${() => setSending(true)}>${emails.sendSample}<//>
        <${Button} icon="refresh" onClick=${reload}>${emails.reload}<//>
      </div>
    </div>
    ${isSending && html`<${SampleDialog} hint=${emails.sampleHint} send=${sendSampleInvitation} onSent=${reload} onClose=${() => setSending(false)} />`}
    ${error && html`<${Notice} kind="error" error=${error} onRetry=${reload} />`}
    ${!value && isLoading && html`<${Loading} />`}
    ${value && !value.kept && html`<${Notice}>${emails.notKept}<//>`}
    ${value?.kept && value.mails.length === 0 && html`<${Empty}>${emails.none}<//>`}
    ${value?.mails.map((mail) => html`<${EmailText} key=${`${mail.at} ${mail.to}`} mail=${mail} />`)}
  `;
}

function EmailText({ mail }: { readonly mail: KeptEmail }) {
  return html`
    <article class="email">
      <h2>${mail.subject}</h2>
      <p class="quiet">${texts.people.emails.sentTo(mail.to, formatTime(mail.at))}</p>
      <p class="email-text">${withLinks(mail.text)}</p>
    </article>
  `;
}

/** Converts addresses in a text to links. */
function withLinks(text: string): Children {
  return text
    .split(LINK)
    .map((part, index) =>
      index % 2 === 1 ? html`<a key=${index} href=${part} target="_blank" rel="noreferrer">${part}</a>` : part,
    );
}
