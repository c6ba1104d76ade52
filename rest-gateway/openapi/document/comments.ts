import { type Catalog, type CatalogColumn, type CatalogTable, publicComment, type QualifiedName } from "#catalog";
import type { VisibleSchema } from "./visible-schema.ts";

type CommentParts = {
  readonly text: string | undefined;
  /** The first line and the rest. */
  readonly summary: string | undefined;
  readonly description: string | undefined;
};

export function readComment(comment: string | null): CommentParts {
  const text = publicComment(comment) ?? "";
  const end = text.indexOf("\n");
  return {
    text: text || undefined,
    summary: (end < 0 ? text : text.slice(0, end)) || undefined,
    description: (end < 0 ? "" : text.slice(end).replace(/^\n+/, "")) || undefined,
  };
}

/** Describes columns by their comments and keys. Tools look for `<pk/>` and `<fk table='…' column='…'/>`. */
export function makeColumnDescriber(
  table: CatalogTable,
  viewer: VisibleSchema,
  catalog: Catalog,
): (column: CatalogColumn) => string | undefined {
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
    if (table.distribution?.column === name) {
      notes.push(
        `Rows are distributed by this column: requests with \`${name}=eq.…\` are sent to one shard, others to all.`,
      );
    }
    if (notes.length === 0) return text;
    return [...(text ? [`${text}\n`] : []), "Note:", ...notes].join("\n");
  };
}

/** A foreign key of one column. */
type KeyReference = { readonly from: string; readonly target: QualifiedName; readonly to: string };

/** Finds foreign keys within the schema to columns that the role may see; the first one of each column is used. */
function findReferences(table: CatalogTable, viewer: VisibleSchema, catalog: Catalog): readonly KeyReference[] {
  const isSeen = ({ target, to }: KeyReference) =>
    target.schema === table.schema && (viewer.findVisible(target)?.columns.some(({ name }) => name === to) ?? false);
  const stored = storedReferences(table, catalog);
  return stored?.every(isSeen) ? stored : detectedReferences(table, catalog).filter(isSeen);
}

/** Returns the foreign keys of the table, or of the tables that a view shows; null if one of them is unknown. */
function storedReferences(table: CatalogTable, catalog: Catalog): KeyReference[] | null {
  const references: KeyReference[] = [];
  for (const { name, origin: shows } of table.columns.values()) {
    const origin = shows ? catalog.findTable(shows.table) : table;
    if (!origin) return null;
    for (const { columns, target, targetColumns } of origin.foreignKeys) {
      const isItsKey = columns.length === 1 && columns[0] === (shows?.column ?? name);
      if (isItsKey) references.push({ from: name, target, to: targetColumns[0]! });
    }
  }
  return references.sort((a, b) => Number(a.target.name > b.target.name) - Number(a.target.name < b.target.name));
}

/** Returns the relationships that embedding finds, including views on the target; tables come first. */
function detectedReferences(table: CatalogTable, catalog: Catalog): KeyReference[] {
  const leadsToView = ({ target }: KeyReference) => Number(/view$/.test(catalog.findTable(target)!.kind));
  return catalog
    .referencesFrom(table)
    .filter(({ columns }) => columns.length === 1)
    .map(({ columns: [pair], target }) => ({ from: pair!.source, target, to: pair!.target }))
    .sort((a, b) => leadsToView(a) - leadsToView(b));
}
