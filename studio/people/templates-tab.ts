import { useEffect, useState } from "preact/hooks";
import type { EmailSource, EmailTemplate, EmailTemplateList } from "#operations/admin-types";
import { type Loaded, useChanges, useLoaded } from "../api/use-loaded.ts";
import { Button } from "../components/button.ts";
import { TextArea, TextField } from "../components/field.ts";
import { Notice } from "../components/notice.ts";
import { Loading } from "../components/page.ts";
import { showToast } from "../components/toast.ts";
import { useDelayed } from "../components/use-delayed.ts";
import { html } from "../html.ts";
import { pathTo, useSegments } from "../router.ts";
import { formatTime } from "../texts/format.ts";
import { texts } from "../texts.ts";
import { EmailFrame } from "./email-frame.ts";
import {
  deleteEmailTemplate,
  listEmailTemplates,
  previewEmail,
  saveEmailTemplate,
  sendSampleEmail,
} from "./email-templates.ts";
import { SampleDialog } from "./sample-dialog.ts";

const words = texts.people.templates;

/** `/studio/people/templates/<name>`: the e-mails that users receive, which administrators may write themselves. */
export function TemplatesTab() {
  const [, , name] = useSegments();
  const loaded = useLoaded(listEmailTemplates, []);
  const { value, error, isLoading, reload } = loaded;
  const current = value?.templates.find((template) => template.name === name) ?? value?.templates[0];
  return html`
    <p class="quiet">${words.intro} <a href="/docs/guide/sign-in#templates" target="_blank" rel="noreferrer">${words.documentation}</a></p>
    ${!value && error && html`<${Notice} kind="error" error=${error} onRetry=${reload} />`}
    ${!value && isLoading && html`<${Loading} />`}
    ${
      value &&
      current &&
      html`
        <div class="templates">
          <${TemplateLinks} templates=${value.templates} current=${current.name} />
          <${TemplateEditor} key=${current.name} template=${current} variables=${value.variables} loaded=${loaded} />
        </div>
      `
    }
  `;
}

function TemplateLinks({ templates, current }: { templates: readonly EmailTemplate[]; current: string }) {
  return html`
    <nav class="link-list" aria-label=${words.list}>
      <ul>
        ${templates.map(
          ({ name, origin }) => html`
            <li key=${name}>
              <a href=${pathTo("people", "templates", name)} aria-current=${name === current ? "page" : undefined}>
                ${words.names[name as keyof typeof words.names] ?? name}
                ${origin !== "default" && html`<span class="badge">${words.origins[origin]}</span>`}
              </a>
            </li>
          `,
        )}
      </ul>
    </nav>
  `;
}

type TemplateEditorProps = {
  readonly template: EmailTemplate;
  readonly variables: EmailTemplateList["variables"];
  readonly loaded: Loaded<EmailTemplateList>;
};

/** The source of an e-mail, beside what it looks like with the values of an example. */
function TemplateEditor({ template, variables, loaded }: TemplateEditorProps) {
  const { name, origin, file, saved_at: savedAt } = template;
  const inForce = sourceOf(template);
  const [draft, setDraft] = useState(inForce);
  const [isSending, setSending] = useState(false);
  const { failure, change } = useChanges(loaded);
  // After a save this is the draft, and after a deletion the default e-mail.
  useEffect(() => setDraft(inForce), [JSON.stringify(inForce)]);
  const isChanged = JSON.stringify(draft) !== JSON.stringify(inForce);
  const save = async () => {
    await saveEmailTemplate(name, draft);
    showToast({ text: words.saved });
  };
  const restore = async () => {
    await deleteEmailTemplate(name);
    const onSelect = () => void change(saveEmailTemplate(name, inForce));
    showToast({ text: words.restored, action: { label: texts.editing.undo, onSelect } });
  };
  const disabled = file !== null;
  const edit = (part: keyof EmailSource) => (text: string) =>
    setDraft({ ...draft, [part]: part === "subject" || text !== "" ? text : null });
  return html`
    <div class="stack">
      ${file !== null && html`<${Notice}><p>${words.isFile(file)}</p><//>`}
      ${savedAt && html`<p class="quiet">${words.savedAt(formatTime(savedAt))}</p>`}
      <${TextField} label=${words.subject} value=${draft.subject} disabled=${disabled} onInput=${edit("subject")} autocomplete="off" />
      <div class="template-parts">
        <div class="stack template-sources">
          <${TextArea} label=${words.html} hint=${words.htmlHint} rows=${12} value=${draft.html ?? ""} disabled=${disabled} onInput=${edit("html")} />
          <${TextArea} label=${words.text} hint=${words.textHint} rows=${8} value=${draft.text ?? ""} disabled=${disabled} onInput=${edit("text")} />
          <p class="field-hint">${words.variables} ${variables.map((each) => html`<code key=${each}>{{ .${each} }}</code> `)}</p>
        </div>
        <${Preview} name=${name} source=${draft} />
      </div>
      ${failure && html`<${Notice} kind="error" error=${failure} />`}
      <div class="row">
        <${Button} kind="primary" disabled=${disabled || !isChanged} onClick=${() => change(save())}>${words.save}<//>
        <${Button} onClick=${() => setSending(true)}>${words.sendSample}<//>
        ${isChanged && html`<${Button} onClick=${() => setDraft(inForce)}>${words.discard}<//>`}
        ${origin === "saved" && html`<${Button} kind="danger" onClick=${() => change(restore())}>${words.toDefault}<//>`}
      </div>
      ${
        isSending &&
        html`<${SampleDialog} hint=${words.sampleHint} send=${(email: string) => sendSampleEmail(name, draft, email)} onClose=${() => setSending(false)} />`
      }
    </div>
  `;
}

function sourceOf({ subject, html: markup, text }: EmailTemplate): EmailSource {
  return { subject, html: markup, text };
}

/** The e-mail as it is typed, or why it cannot be used. */
function Preview({ name, source }: { readonly name: string; readonly source: EmailSource }) {
  const typed = useDelayed(JSON.stringify(source));
  const { value, error } = useLoaded((signal) => previewEmail(name, JSON.parse(typed), signal), [typed]);
  return html`
    <section class="stack" aria-label=${words.preview}>
      <h2>${words.preview}</h2>
      ${error && html`<${Notice} kind="error" error=${error} />`}
      ${
        !error &&
        value &&
        html`
          <p class="notice-title">${value.subject}</p>
          ${value.html !== null && html`<${EmailFrame} title=${words.previewOf(value.subject)} content=${value.html} />`}
          <h3>${words.asText}</h3>
          <p class="email email-text">${value.text}</p>
        `
      }
    </section>
  `;
}
