import type { DescribedName } from "../api/catalog.ts";
import { shortName } from "../api/catalog.ts";
import { type Children, html } from "../html.ts";
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

/** The name of the object, its most important facts, and what can be done with it. */
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

type SectionProps = {
  readonly title: string;
  readonly count?: number;
  readonly actions?: Children;
  readonly children?: Children;
};

export function Section({ title, count, actions, children }: SectionProps) {
  return html`
    <section class="schema-section">
      <div class="row">
        <h3>${title}${count !== undefined && html` <span class="quiet">${count}</span>`}</h3>
        <div class="page-actions">${actions}</div>
      </div>
      ${children}
    </section>
  `;
}

type PlainTableProps = {
  readonly label: string;
  /** Empty for a column of menus. */
  readonly head: readonly string[];
  /** Their cells. */
  readonly rows: readonly (readonly Children[])[];
};

/** A table whose first column names the row. */
export function PlainTable({ label, head, rows }: PlainTableProps) {
  return html`
    <div class="scroll-x" tabindex="0" role="region" aria-label=${label}>
      <table class="plain-table">
        <thead><tr>${head.map((title) => html`<th key=${title} scope="col">${title || html`<span class="visually-hidden">${texts.schema.actions}</span>`}</th>`)}</tr></thead>
        <tbody>
          ${rows.map(
            ([first, ...others], index) => html`
              <tr key=${index}><th scope="row">${first}</th>${others.map((cell, at) => html`<td key=${at}>${cell}</td>`)}</tr>
            `,
          )}
        </tbody>
      </table>
    </div>
  `;
}

/** Names and values, without those that are null. */
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

const UNITS = ["B", "kB", "MB", "GB", "TB"];

/** `8.2 kB`, as pg_size_pretty counts. */
export function formatBytes(bytes: number | null): string {
  if (bytes === null) return "";
  let [value, unit] = [bytes, 0];
  while (value >= 1024 && unit < UNITS.length - 1) {
    value /= 1024;
    unit++;
  }
  return `${value >= 10 || Number.isInteger(value) ? Math.round(value) : value.toFixed(1)}\u00a0${UNITS[unit]}`;
}

export function formatCount(count: number | null): string {
  return count === null ? "" : texts.schema.about(Math.round(count).toLocaleString("en"));
}
