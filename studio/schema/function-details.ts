import { type DatabaseDescription, type DescribedFunction, readableComment, shortName } from "../api/catalog.ts";
import { CopyButton } from "../components/code-block.ts";
import { CodeEditor } from "../components/code-editor.ts";
import { type Children, html } from "../html.ts";
import { texts } from "../texts.ts";
import { Code, DetailsHeader, DetailsSection, Facts, PartsTable, TableLink } from "./details-parts.ts";

type FunctionProps = { readonly catalog: DatabaseDescription; readonly described: DescribedFunction };

export function FunctionDetails({ catalog, described }: FunctionProps) {
  const { kind, comment, definition } = described;
  return html`
    <article class="schema-article">
      <${DetailsHeader} name=${`${shortName(described)}(${described.signature})`} kind=${kind} comment=${readableComment(comment)}>
        ${described.security_definer && html`<span class="badge warning">${texts.schema.securityDefiner}</span>`}
        ${!described.exposed && html`<span class="badge">${texts.schema.notExposed}</span>`}
      <//>
      <${Facts} facts=${factsOf(described)} />
      ${described.inputs.length > 0 && html`<${Inputs} described=${described} />`}
      ${described.returns === "trigger" && html`<${TriggersOf} catalog=${catalog} described=${described} />`}
      ${
        definition !== null &&
        html`<${DetailsSection} title=${texts.schema.definition} actions=${html`<${CopyButton} text=${definition} />`}>
          <${CodeEditor} label=${texts.schema.definition} language="sql" value=${definition} />
        <//>`
      }
    </article>
  `;
}

function factsOf(described: DescribedFunction): [string, Children][] {
  const grantees = described.grants.filter(({ privileges }) => privileges.includes("execute")).map(({ role }) => role);
  return [
    [texts.schema.returns, described.returns && html`<${Code} text=${described.returns} />`],
    [texts.schema.language, described.language],
    [texts.schema.volatility, described.volatility],
    [texts.schema.strict, described.strict ? texts.schema.yes : null],
    [texts.schema.owner, described.owner],
    [texts.schema.executableBy, grantees.join(", ")],
  ];
}

function Inputs({ described }: Pick<FunctionProps, "described">) {
  return html`
    <${DetailsSection} title=${texts.schema.inputs} count=${described.inputs.length}>
      <${PartsTable}
        label=${texts.schema.inputs}
        head=${texts.schema.inputHead}
        rows=${described.inputs.map(({ name, type, mode, default: initial }, index) => [
          html`<span class="schema-name">${name ?? `$${index + 1}`}</span>`,
          html`<${Code} text=${type} />`,
          mode,
          initial === null ? "" : html`<${Code} text=${initial} />`,
        ])}
      />
    <//>
  `;
}

function TriggersOf({ catalog, described }: FunctionProps) {
  const uses = catalog.tables.flatMap((table) =>
    table.triggers
      .filter(({ function: called }) => called.schema === described.schema && called.name === described.name)
      .map((trigger) => ({ table, trigger })),
  );
  if (uses.length === 0) return null;
  return html`
    <${DetailsSection} title=${texts.schema.triggers} count=${uses.length}>
      <${PartsTable}
        label=${texts.schema.triggers}
        head=${texts.schema.triggerUseHead}
        rows=${uses.map(({ table, trigger }) => [
          html`<${TableLink} name=${table} />`,
          trigger.name,
          html`<${Code} text=${trigger.definition} />`,
        ])}
      />
    <//>
  `;
}
