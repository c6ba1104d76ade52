import {
  type DatabaseDescription,
  type DescribedColumn,
  type DescribedExtension,
  type DescribedPublication,
  type DescribedSequence,
  type DescribedType,
  isSameName,
  readableComment,
  shortName,
} from "../api/catalog.ts";
import { html } from "../html.ts";
import { identifierOf } from "../sql-text.ts";
import { texts } from "../texts.ts";
import { Code, DetailsHeader, DetailsSection, Facts, PartsTable, TableLink } from "./details-parts.ts";
import { TypeMenu } from "./forms/schema-menus.ts";

type TypeProps = { readonly catalog: DatabaseDescription; readonly type: DescribedType };

/** An enum, domain, composite type or range, and the columns of this type. */
export function TypeDetails({ catalog, type }: TypeProps) {
  const uses = catalog.tables.flatMap((table) =>
    table.columns.filter((column) => isOfType(column, type)).map((column) => ({ table, column })),
  );
  return html`
    <article class="schema-article">
      <${DetailsHeader} name=${shortName(type)} kind=${type.kind} comment=${readableComment(type.comment)} actions=${html`<${TypeMenu} type=${type} />`} />
      <${Facts}
        facts=${[
          [texts.schema.baseType, type.base_type && html`<${Code} text=${type.base_type} />`],
          [texts.schema.notNull, type.not_null ? texts.schema.yes : null],
          [texts.schema.default, type.default && html`<${Code} text=${type.default} />`],
        ]}
      />
      ${type.kind === "enum" && html`<${Labels} labels=${type.labels} />`}
      ${
        type.checks.length > 0 &&
        html`<${DetailsSection} title=${texts.schema.constraints} count=${type.checks.length}>
          <${PartsTable}
            label=${texts.schema.constraints}
            head=${texts.schema.checkHead}
            rows=${type.checks.map(({ name, expression }) => [name, html`<${Code} text=${expression} />`])}
          />
        <//>`
      }
      ${
        type.attributes.length > 0 &&
        html`<${DetailsSection} title=${texts.schema.attributes} count=${type.attributes.length}>
          <${PartsTable}
            label=${texts.schema.attributes}
            head=${texts.schema.attributeHead}
            rows=${type.attributes.map((each) => [each.name, html`<${Code} text=${each.type} />`, each.comment ?? ""])}
          />
        <//>`
      }
      ${
        uses.length > 0 &&
        html`<${DetailsSection} title=${texts.schema.usedBy} count=${uses.length}>
          <${PartsTable}
            label=${texts.schema.usedBy}
            head=${texts.schema.typeUseHead}
            rows=${uses.map(({ table, column }) => [html`<${TableLink} name=${table} />`, column.name])}
          />
        <//>`
      }
    </article>
  `;
}

/** True if the column holds values of the type, or arrays of them. */
function isOfType({ type_name: name, type: text }: DescribedColumn, type: DescribedType): boolean {
  return (name !== null && isSameName(name, type)) || text === `${identifierOf(type)}[]`;
}

function Labels({ labels }: Pick<DescribedType, "labels">) {
  return html`
    <${DetailsSection} title=${texts.schema.labels} count=${labels.length}>
      <ol class="schema-labels">${labels.map((label) => html`<li key=${label}><${Code} text=${label === "" ? "''" : label} /></li>`)}</ol>
    <//>
  `;
}

export function SequenceDetails({ sequence }: { readonly sequence: DescribedSequence }) {
  const { type, start, increment, minimum, maximum, cycle, owned_by: column } = sequence;
  return html`
    <article class="schema-article">
      <${DetailsHeader} name=${shortName(sequence)} kind=${texts.schema.kindNames.sequence} comment=${sequence.comment} />
      <${Facts}
        facts=${[
          [texts.schema.type, type],
          [texts.schema.start, start],
          [texts.schema.increment, increment],
          [texts.schema.range, `${minimum} – ${maximum}`],
          [texts.schema.cycle, cycle ? texts.schema.yes : null],
          [texts.schema.ownedBy, column && html`<${TableLink} name=${column} />.${column.column}`],
        ]}
      />
    </article>
  `;
}

export function ExtensionDetails({ extension }: { readonly extension: DescribedExtension }) {
  const { name, schema, version, comment } = extension;
  return html`
    <article class="schema-article">
      <${DetailsHeader} name=${name} kind=${texts.schema.kindNames.extension} comment=${comment} />
      <${Facts} facts=${[[texts.schema.version, version], [texts.schema.schema, schema]]} />
    </article>
  `;
}

export function PublicationDetails({ publication }: { readonly publication: DescribedPublication }) {
  const { name, owner, realtime, all_tables: all, events, tables } = publication;
  return html`
    <article class="schema-article">
      <${DetailsHeader} name=${name} kind=${texts.schema.kindNames.publication} comment=${null}>
        ${realtime && html`<span class="badge good">${texts.schema.realtime}</span>`}
      <//>
      <${Facts} facts=${[[texts.schema.owner, owner], [texts.schema.events, events.join(", ")], [texts.schema.allTables, all ? texts.schema.yes : null]]} />
      <${DetailsSection} title=${texts.schema.kinds.table} count=${tables.length}>
        <ul>${tables.map((table) => html`<li key=${shortName(table)}><${TableLink} name=${table} /></li>`)}</ul>
      <//>
    </article>
  `;
}
