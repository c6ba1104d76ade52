import fc, { type GeneratorValue } from "fast-check";
import { REQUIRED_COLUMNS, SHARED_COLUMNS, SHOP, type ShopRelation } from "./shop.ts";

/** A row of a payload, with related rows. */
export type PayloadRow = {
  readonly table: string;
  readonly values: Record<string, unknown>;
  readonly related: readonly RelatedRows[];
};

/** `rows` is null where the payload has null. */
export type RelatedRows = { readonly relation: ShopRelation; readonly rows: readonly PayloadRow[] | null };

export type Payload = {
  readonly table: string;
  readonly rows: readonly PayloadRow[];
  readonly isArray: boolean;
  /** Rows may lack columns that others have. */
  readonly missingAsDefault: boolean;
};

const MAX_DEPTH = 4;
const MAX_ROWS = 30;
/** The ends of labels to which triggers of `shop.sql` react. */
const REFUSED_LABELS = [" dropped", " raised", " late"];
const WITHOUT_LABEL: ReadonlySet<string> = new Set(["order_tags"]);

/** A payload in which at most one value is invalid. */
export function generatePayload(g: GeneratorValue): Payload {
  const table = g(fc.constantFrom, ...Object.keys(SHOP));
  const isArray = g(fc.boolean);
  const generator = new PayloadGenerator(g, g(fc.boolean));
  const count = isArray ? g(fc.integer, { min: 1, max: 3 }) : 1;
  const rows = Array.from({ length: count }, () => generator.row(table, [], { taken: new Set(), around: null }));
  if (g(fc.integer, { min: 0, max: 2 }) === 0) invalidateOne(g, rows, generator.missingAsDefault);
  return { table, rows, isArray, missingAsDefault: generator.missingAsDefault };
}

/** The JSON of rows as a client sends it. */
export function toJson({ values, related }: PayloadRow): Record<string, unknown> {
  const nested = related.map(({ relation, rows }) => {
    const json = rows?.map(toJson) ?? null;
    return [relation.embed, isList(relation) || json === null ? json : json[0]];
  });
  return { ...values, ...Object.fromEntries(nested) };
}

export function isList(relation: ShopRelation): boolean {
  return relation.kind === "many-to-many" || (relation.kind === "to-many" && !relation.isSingle);
}

export function rowsWithin(rows: readonly PayloadRow[]): PayloadRow[] {
  return rows.flatMap((row) => [row, ...row.related.flatMap((each) => rowsWithin(each.rows ?? []))]);
}

type RowKeys = { readonly columns: readonly string[]; readonly relations: readonly ShopRelation[] };

type RowPlace = {
  /** The columns whose values come from the row around it. */
  readonly taken: ReadonlySet<string>;
  /** The table of the row around it. */
  readonly around: string | null;
};

class PayloadGenerator {
  readonly #g: GeneratorValue;
  readonly missingAsDefault: boolean;
  /** Unless missing columns get their defaults, all rows at one place of the payload have the same keys. */
  readonly #keysAt = new Map<string, RowKeys>();
  #count = 0;

  constructor(g: GeneratorValue, missingAsDefault: boolean) {
    this.#g = g;
    this.missingAsDefault = missingAsDefault;
  }

  row(table: string, path: readonly string[], place: RowPlace): PayloadRow {
    this.#count += 1;
    const number = this.#count;
    const { columns, relations } = this.#keys(table, path, place);
    const own = columns.map((name) => [name, this.#g(fc.constantFrom, ...SHOP[table]!.columns[name]!.valid)]);
    const values = { ...Object.fromEntries(own), ...uniqueValues(table, number, place.taken) };
    const related = relations.map((relation) => this.#related(relation, path, table));
    return { table, values, related };
  }

  #keys(table: string, path: readonly string[], place: RowPlace): RowKeys {
    const at = path.join();
    const known = this.#keysAt.get(at);
    if (known && !this.missingAsDefault) return known;
    const keys = this.#chooseKeys(table, path.length, place);
    this.#keysAt.set(at, keys);
    return keys;
  }

  #chooseKeys(table: string, depth: number, { taken, around }: RowPlace): RowKeys {
    const { columns, relations } = SHOP[table]!;
    const free = Object.keys(columns).filter((name) => columns[name]!.valid.length > 0 && !taken.has(name));
    const isRequired = (name: string) => REQUIRED_COLUMNS[table]?.includes(name) === true;
    const filled = new Set([...taken, ...free.filter((name) => isRequired(name) || this.#g(fc.boolean))]);
    const chosen: ShopRelation[] = [];
    for (const relation of relations) {
      const own = relation.kind === "to-one" ? relation.columns.map(([name]) => name) : [];
      if (own.some((name) => filled.has(name) && !SHARED_COLUMNS[table]?.includes(name))) continue;
      // The row around it is the only one that may refer to this one.
      if (relation.kind === "to-many" && relation.isSingle && relation.target === around) continue;
      const mustBe = relation.kind === "to-one" && relation.isRequired;
      const mayBe = depth < MAX_DEPTH && this.#count < MAX_ROWS && this.#g(fc.integer, { min: 0, max: 2 }) === 0;
      if (!mustBe && !mayBe) continue;
      chosen.push(relation);
      for (const name of own) filled.add(name);
    }
    // A required column is given besides, with the same value.
    const isGiven = (name: string) => filled.has(name) && (isRequired(name) || !isFilledBy(chosen, name));
    return { columns: free.filter(isGiven), relations: chosen };
  }

  #related(relation: ShopRelation, path: readonly string[], table: string): RelatedRows {
    const { target, embed } = relation;
    const within = [...path, embed];
    const mayBeNull = relation.kind !== "to-one" || !relation.isRequired;
    if (mayBeNull && this.#g(fc.integer, { min: 0, max: 5 }) === 0) return { relation, rows: null };
    const count = isList(relation) ? this.#g(fc.integer, { min: 0, max: this.#count < MAX_ROWS ? 3 : 0 }) : 1;
    const taken = new Set(relation.kind === "to-many" ? relation.columns.map(([, other]) => other) : []);
    return { relation, rows: Array.from({ length: count }, () => this.row(target, within, { taken, around: table })) };
  }
}

function isFilledBy(relations: readonly ShopRelation[], column: string): boolean {
  return relations.some(({ kind, columns }) => kind === "to-one" && columns.some(([own]) => own === column));
}

/** Values that no two rows may have. */
function uniqueValues(table: string, number: number, taken: ReadonlySet<string>): Record<string, unknown> {
  return {
    ...(!WITHOUT_LABEL.has(table) && { label: `new ${number}` }),
    ...(table === "products" && { code: `new${number}` }),
    ...(table === "projects" && { code: `new${number}` }),
    ...((table === "members" || table === "tasks") && { no: 10 + number }),
    ...(table === "lines" && !taken.has("place") && { place: 10 + number }),
  };
}

function invalidateOne(g: GeneratorValue, rows: readonly PayloadRow[], mayAddColumn: boolean): void {
  const { table, values } = g(fc.constantFrom, ...rowsWithin(rows));
  const { columns } = SHOP[table]!;
  const invalid = Object.keys(columns).flatMap((name) => {
    return name in values || (mayAddColumn && name === "internal")
      ? columns[name]!.invalid.map((value) => [name, value] as const)
      : [];
  });
  const labels = "label" in values ? REFUSED_LABELS.map((end) => ["label", `${values.label}${end}`] as const) : [];
  const taken =
    "label" in values
      ? ([
          ["label", "old order"],
          ["label", null],
        ] as const)
      : [];
  const choices = [...invalid, ...labels, ...taken];
  if (choices.length === 0) return;
  const [name, value] = g(fc.constantFrom, ...choices);
  values[name] = value;
}
