import { useState } from "preact/hooks";
import { CodeEditor } from "../components/code-editor.ts";
import { PageHeader } from "../components/page.ts";
import { html } from "../html.ts";
import { texts } from "../texts.ts";

export function SqlPage() {
  const [text, setText] = useState("");
  return html`
    <${PageHeader} title=${texts.sql.title} />
    <${CodeEditor} label=${texts.sql.statements} language="sql" size="fill" value=${text} onChange=${setText} />
  `;
}
