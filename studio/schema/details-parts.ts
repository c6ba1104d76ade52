import type { DescribedName } from "../api/catalog.ts";
import { shortName } from "../api/catalog.ts";
import { PlainTable } from "../components/plain-table.ts";
import { type Children, html } from "../html.ts";
import { formatCount } from "../texts/format.ts";
import { texts } from "../texts.ts";
import { pathToTable } from "./objects.ts";

type HeaderProps = {
  readonly name: string;
  readonly kind: string;
  readonly comment: string | null;
  /** Buttons that change the object. */
  readonly actions?: Children;
  readonly children?: Children;
};

/** The name of the object, its most important facts, and its actions. */
export function DetailsHeader({ name, kind, comment, actions, children }: HeaderProps) {
  return html`
    <header class="schema-header">
      <div class="row">
        <h2>${name}</h2>
        <span class="badge">${kind}</span>
        ${children}
        <div class="page-actions">${actions}</div>
      </div>
      ${comment && html`<p>${comment}</p>`}
    </header>
  `;
}

type DetailsSectionProps = {
  readonly title: string;
  readonly count?: number;
  readonly actions?: Children;
  readonly children?: Children;
};

export function DetailsSection({ title, count, actions, children }: DetailsSectionProps) {
  return html`
    <section class="schema-section" aria-label=${title}>
      <div class="row">
        <h3>${title}${count !== undefined && html` <span class="quiet">${count}</span>`}</h3>
        <div class="page-actions">${actions}</div>
      </div>
      ${children}
    </section>
  `;
}

type PartsTableProps = {
  readonly label: string;
  /** The headers; empty for a column of menus. */
  readonly head: readonly string[];
  /** The cells of the parts; the first cell names the part. */
  readonly rows: readonly (readonly Children[])[];
};

/** The parts of an object, such as its columns. */
export function PartsTable({ label, head, rows }: PartsTableProps) {
  const heads = head.map((title) => title || html`<span class="visually-hidden">${texts.schema.actions}</span>`);
  const parts = rows.map((cells, index) => ({ key: String(index), cells }));
  return html`<${PlainTable} label=${label} heads=${heads} rows=${parts} hasRowHeads />`;
}

/** A list of names and values, without values that are null. */
export function Facts({ facts }: { readonly facts: readonly (readonly [string, Children])[] }) {
  const known = facts.filter(([, value]) => value !== null && value !== undefined && value !== "");
  return html`
    <dl class="schema-facts">
      ${known.map(([name, value]) => html`<div key=${name}><dt>${name}</dt><dd>${value}</dd></div>`)}
    </dl>
  `;
}

export function TableLink({ name }: { readonly name: DescribedName }) {
  return html`<a href=${pathToTable(name)}>${shortName(name)}</a>`;
}

export function Code({ text }: { readonly text: string }) {
  return html`<code class="schema-code">${text}</code>`;
}

/** Returns `about 1,234`; empty if Postgres has not counted. */
export function aboutCount(count: number | null): string {
  return count === null ? "" : texts.schema.about(formatCount(count));
}
