import type { Binding } from "./binding.ts";

type TableBinding = Pick<Binding, "schema" | "table">;

/** The number of bindings by table, so that a change costs the same however many bindings there are. */
export class BoundTables {
  readonly #counts = new Map<string, number>();

  add(bindings: readonly TableBinding[]): void {
    for (const binding of bindings) this.#change(binding, 1);
  }

  remove(bindings: readonly TableBinding[]): void {
    for (const binding of bindings) this.#change(binding, -1);
  }

  /** True if a binding is of the table, of its schema, of its name in any schema, or of all tables. */
  has({ schema, name }: { readonly schema: string; readonly name: string }): boolean {
    if (this.#counts.size === 0) return false;
    return [schema, null].some((ofSchema) =>
      [name, null].some((table) => this.#counts.has(keyOf({ schema: ofSchema, table }))),
    );
  }

  #change(binding: TableBinding, difference: number): void {
    const key = keyOf(binding);
    const count = (this.#counts.get(key) ?? 0) + difference;
    if (count === 0) this.#counts.delete(key);
    else this.#counts.set(key, count);
  }
}

function keyOf({ schema, table }: TableBinding): string {
  return JSON.stringify([schema, table]);
}
