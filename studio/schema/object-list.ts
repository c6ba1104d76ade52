import { useMemo, useState } from "preact/hooks";
import { type DatabaseDescription, readableComment } from "../api/catalog.ts";
import { Checkbox, TextField } from "../components/field.ts";
import { Icon, type IconName } from "../components/icon.ts";
import { Select } from "../components/select.ts";
import { html } from "../html.ts";
import { texts } from "../texts.ts";
import { filterObjects, listObjects, OBJECT_KINDS, type ObjectKind, type SchemaObject } from "./objects.ts";

const ICONS: Readonly<Record<ObjectKind, IconName>> = {
  table: "table",
  function: "function",
  type: "column",
  sequence: "sort",
  extension: "plus",
  publication: "activity",
};

/** The maximum number of shown objects; a search finds more. */
const MAX_SHOWN = 500;

/** All objects of the database, with a search. */
export function ObjectList({ catalog, path }: { readonly catalog: DatabaseDescription; readonly path: string }) {
  const [text, setText] = useState("");
  const [kind, setKind] = useState<ObjectKind | null>(null);
  const [internal, setInternal] = useState(false);
  const objects = useMemo(() => listObjects(catalog), [catalog]);
  const found = filterObjects(objects, { text, kind, internal });
  const kinds = [
    { value: "", label: texts.schema.allKinds },
    ...OBJECT_KINDS.map((each) => ({ value: each, label: texts.schema.kinds[each] })),
  ];
  return html`
    <div class="schema-list link-list">
      <div class="schema-list-head">
        <${TextField}
          label=${texts.schema.search}
          hideLabel
          type="search"
          placeholder=${texts.schema.search}
          value=${text}
          onInput=${setText}
        />
        <${Select}
          label=${texts.schema.kind}
          hideLabel
          value=${kind ?? ""}
          options=${kinds}
          onChange=${(value: string) => setKind(value === "" ? null : (value as ObjectKind))}
        />
        <${Checkbox} label=${texts.schema.internal} checked=${internal} onChange=${setInternal} />
        <p class="quiet" role="status">${texts.schema.found(found.length)}</p>
      </div>
      <nav aria-label=${texts.schema.objects}>
        <ul>
          ${found.slice(0, MAX_SHOWN).map((object) => html`<${Item} key=${object.path} object=${object} isCurrent=${object.path === path} />`)}
        </ul>
        ${found.length > MAX_SHOWN && html`<p class="quiet">${texts.schema.more(found.length - MAX_SHOWN)}</p>`}
      </nav>
    </div>
  `;
}

function Item({ object, isCurrent }: { readonly object: SchemaObject; readonly isCurrent: boolean }) {
  const { kind, schema, name, detail, comment } = object;
  return html`
    <li>
      <a href=${object.path} aria-current=${isCurrent ? "page" : undefined} title=${readableComment(comment) ?? undefined}>
        <${Icon} name=${ICONS[kind]} />
        <span class="visually-hidden">${texts.schema.kindNames[kind]}</span>
        <span class="schema-item-name">
          ${schema !== null && schema !== "public" && html`<span class="quiet">${schema}.</span>`}${name}
        </span>
        <span class="schema-item-detail quiet">${detail === "table" ? "" : detail}</span>
      </a>
    </li>
  `;
}
