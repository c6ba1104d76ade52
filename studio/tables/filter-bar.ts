import { useEffect, useRef, useState } from "preact/hooks";
import { Button, IconButton } from "../components/button.ts";
import { TextField } from "../components/field.ts";
import { Select } from "../components/select.ts";
import { html } from "../html.ts";
import { texts } from "../texts.ts";
import { type FilterOperator, filterKind, operatorsOf, type RowFilter, wantsValue } from "./rows/filters.ts";
import type { TableColumns } from "./rows/use-columns.ts";

type FilterBarProps = {
  readonly columns: TableColumns;
  readonly filters: readonly RowFilter[];
  /** The filter that is not applied yet. */
  readonly draft: RowFilter | null;
  readonly onDraft: (draft: RowFilter | null) => void;
  readonly onChange: (filters: readonly RowFilter[]) => void;
};

/** The conditions on the rows; Enter applies them. */
export function FilterBar({ columns, filters, draft, onDraft, onChange }: FilterBarProps) {
  const [edited, setEdited] = useState(filters);
  useEffect(() => setEdited(filters), [filters]);
  const form = useRef<HTMLFormElement>(null);
  useEffect(() => {
    if (draft)
      [...form.current!.querySelectorAll<HTMLElement>(".filter-row:last-of-type :is(input, select)")].at(-1)?.focus();
  }, [draft === null, draft?.column, draft?.operator]);
  const shown = draft ? [...edited, draft] : edited;
  if (shown.length === 0) return null;
  const apply = (next: readonly RowFilter[]) => {
    onDraft(null);
    onChange(next);
  };
  const replace = (index: number, filter: RowFilter) => {
    if (index === edited.length) onDraft(filter);
    else setEdited(edited.with(index, filter));
  };
  const submit = (event: Event) => {
    event.preventDefault();
    apply(shown);
  };
  return html`
    <form ref=${form} class="filter-bar" aria-label=${texts.tables.filters} onSubmit=${submit}>
      ${shown.map(
        (filter, index) =>
          html`<${FilterRow} key=${index} filter=${filter} columns=${columns} onChange=${(next: RowFilter) => replace(index, next)} onRemove=${() => apply(shown.toSpliced(index, 1))} />`,
      )}
      <div class="filter-actions">
        <${Button} kind="primary" size="small" type="submit">${texts.tables.applyFilters}<//>
        <${Button} kind="quiet" size="small" onClick=${() => apply([])}>${texts.tables.clearFilters}<//>
      </div>
    </form>
  `;
}

type FilterRowProps = {
  readonly filter: RowFilter;
  readonly columns: TableColumns;
  readonly onChange: (filter: RowFilter) => void;
  readonly onRemove: () => void;
};

function FilterRow({ filter, columns, onChange, onRemove }: FilterRowProps) {
  const column = columns.byName.get(filter.column);
  const kind = column ? filterKind(column) : "other";
  const offered: readonly FilterOperator[] = operatorsOf(kind);
  const operators = offered.includes(filter.operator) ? offered : [...offered, filter.operator];
  const names = columns.all.map(({ name }) => name);
  const chooseColumn = (name: string) => {
    const next = operatorsOf(filterKind(columns.byName.get(name)!));
    const operator = next.includes(filter.operator as never) ? filter.operator : next[0]!;
    onChange({ ...filter, column: name, path: "", operator });
  };
  return html`
    <div class="filter-row">
      <${Select} label=${texts.tables.filterColumn} hideLabel value=${filter.column} options=${column ? names : [...names, filter.column]} onChange=${chooseColumn} />
      ${kind === "json" && html`<${TextField} label=${texts.tables.jsonPath} hideLabel placeholder="->>key" value=${filter.path} onInput=${(path: string) => onChange({ ...filter, path })} />`}
      <${Select}
        label=${texts.tables.filterOperator}
        hideLabel
        value=${filter.operator}
        options=${operators.map((operator) => ({ value: operator, label: texts.tables.operators[operator] }))}
        onChange=${(operator: string) => onChange({ ...filter, operator: operator as FilterOperator })}
      />
      ${wantsValue(filter.operator) && html`<${FilterValue} filter=${filter} labels=${column?.type_kind === "enum" ? column.labels : null} hint=${texts.tables.valueHints[kind]} onChange=${onChange} />`}
      <${IconButton} icon="close" size="small" label=${texts.tables.removeFilter(filter.column)} onClick=${onRemove} />
    </div>
  `;
}

type FilterValueProps = {
  readonly filter: RowFilter;
  readonly labels: readonly string[] | null;
  readonly hint: string;
  readonly onChange: (filter: RowFilter) => void;
};

function FilterValue({ filter, labels, hint, onChange }: FilterValueProps) {
  const { operator, value } = filter;
  const change = (next: string) => onChange({ ...filter, value: next });
  if (labels && operator !== "in" && operator !== "notIn" && operator !== "other") {
    const options = labels.includes(value) ? labels : [{ value, label: texts.tables.chooseValue }, ...labels];
    return html`<${Select} label=${texts.tables.filterValue} hideLabel value=${value} options=${options} onChange=${change} />`;
  }
  const placeholder =
    operator === "in" || operator === "notIn" ? texts.tables.listHint : operator === "other" ? "not.eq.5" : hint;
  return html`<${TextField} label=${texts.tables.filterValue} hideLabel placeholder=${placeholder} value=${value} onInput=${change} />`;
}
