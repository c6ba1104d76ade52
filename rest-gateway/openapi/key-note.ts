import type { Catalog } from "../../engine/catalog/catalog.ts";
import type { Column } from "../../engine/catalog/columns.ts";
import type { QualifiedName } from "../../engine/catalog/qualified-name.ts";
import type { Table } from "../../engine/catalog/tables.ts";
import { readComment } from "./comment.ts";
import type { Viewer } from "./viewer.ts";

/** Describes the columns of a table by their comments and their keys. Tools look for `<pk/>` and `<fk table='…' column='…'/>`. */
export function makeColumnDescriber(
  table: Table,
  viewer: Viewer,
  catalog: Catalog,
): (column: Column) => string | undefined {
  const references = findReferences(table, viewer, catalog);

  return ({ name, comment }) => {
    const { text } = readComment(comment);
    const notes: string[] = [];
    if (table.primaryKey.includes(name)) notes.push("This is a Primary Key.<pk/>");
    const there = references.find(({ from }) => from === name);
    if (there) {
      const { target, to } = there;
      notes.push(`This is a Foreign Key to \`${target.name}.${to}\`.<fk table='${target.name}' column='${to}'/>`);
    }
    if (notes.length === 0) return text;
    return [...(text ? [`${text}\n`] : []), "Note:", ...notes].join("\n");
  };
}

/** A foreign key of one column. */
type Reference = { readonly from: string; readonly target: QualifiedName; readonly to: string };

/** Those within the schema whose end the role may see; of several for one column the first is meant. */
function findReferences(table: Table, viewer: Viewer, catalog: Catalog): readonly Reference[] {
  const isSeen = ({ target, to }: Reference) =>
    target.schema === table.schema && (viewer.see(target)?.columns.some(({ name }) => name === to) ?? false);
  const stored = storedReferences(table, catalog);
  return stored?.every(isSeen) ? stored : detectedReferences(table, catalog).filter(isSeen);
}

/** By the keys of the table, or of the tables that a view shows; null when one of those is not known here. */
function storedReferences(table: Table, catalog: Catalog): Reference[] | null {
  const references: Reference[] = [];
  for (const { name, shows } of table.columns.values()) {
    const origin = shows ? catalog.findTable(shows.table) : table;
    if (!origin) return null;
    for (const { columns, target, targetColumns } of origin.foreignKeys) {
      const isItsKey = columns.length === 1 && columns[0] === (shows?.column ?? name);
      if (isItsKey) references.push({ from: name, target, to: targetColumns[0]! });
    }
  }
  return references.sort((a, b) => Number(a.target.name > b.target.name) - Number(a.target.name < b.target.name));
}

/** As embedding finds them: what a key leads to may be shown by views, too. Tables come first. */
function detectedReferences(table: Table, catalog: Catalog): Reference[] {
  const leadsToView = ({ target }: Reference) => Number(/view$/.test(catalog.findTable(target)!.kind));
  return catalog
    .referencesFrom(table)
    .filter(({ columns }) => columns.length === 1)
    .map(({ columns: [pair], target }) => ({ from: pair!.source, target, to: pair!.target }))
    .sort((a, b) => leadsToView(a) - leadsToView(b));
}
