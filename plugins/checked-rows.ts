import type { PgSelectStep } from "postgraphile/@dataplan/pg";
import { type ExecutionDetails, type GrafastResultsList, Step } from "postgraphile/grafast";

type Rows = ReturnType<PgSelectStep["items"]>;

/**
 * The rows of a list whose arguments may be refused. The list is often a part of its parent's statement, which would fail with
 * its arguments; so it is read with others in their place, and fails itself.
 */
export class CheckedRowsStep extends Step {
  static override $$export = { moduleName: import.meta.filename, exportName: "CheckedRowsStep" };

  constructor($rows: PgSelectStep, checks: readonly Step[]) {
    super();
    this.isSyncAndSafe = true;
    this.addStrongDependency($rows.items());
    for (const $check of checks) this.addDependency($check);
  }

  listItem($item: Step): Step {
    return (this.getDepOptions(0).step as Rows).listItem($item as Parameters<Rows["listItem"]>[0]) as Step;
  }

  override execute({ indexMap, values }: ExecutionDetails): GrafastResultsList<unknown> {
    const rows = values[0]!;
    return indexMap((index) => rows.at(index));
  }
}
