import type pg from "pg";
import { committedMigrations, type Migration } from "./committed.ts";
import type { History } from "./histories.ts";
import { type AppliedMigration, appliedMigrations } from "./record.ts";

/** How a database stands to the migrations of this program and its project. Migrations are named `content/000007-tags.sql`. */
export type MigrationState =
  /** None of them: a database that was never ours. */
  | { readonly kind: "foreign" }
  /** Made by the single history of an earlier version. */
  | { readonly kind: "single history" }
  | { readonly kind: "current"; readonly applied: number }
  | { readonly kind: "behind"; readonly applied: number; readonly missing: readonly string[] }
  /** All of ours and later ones: a newer release has migrated it. */
  | { readonly kind: "ahead"; readonly unknown: readonly string[] }
  /** Another migration was applied in the place of one that is here. */
  | { readonly kind: "diverged"; readonly applied: string; readonly committed: string };

export async function migrationState(client: pg.ClientBase, histories: readonly History[]): Promise<MigrationState> {
  const all = await Promise.all(histories.map(committedMigrations));
  const applied = await appliedMigrations(client);
  if (applied.length === 0) return { kind: "foreign" };
  if (applied.some(({ history }) => history === null)) return { kind: "single history" };

  const missing: Migration[] = [];
  const known = new Set<AppliedMigration>();
  for (const [index, { name: history }] of histories.entries()) {
    const committed = all[index]!;
    const had = applied.filter((migration) => migration.history === history).sort(byName);
    for (const [place, migration] of committed.entries()) {
      const other = had[place];
      if (!other) missing.push(migration);
      else if (other.hash === migration.hash) known.add(other);
      else return { kind: "diverged", applied: nameOf(other), committed: nameOf(migration) };
    }
  }
  if (missing.length > 0) return { kind: "behind", applied: known.size, missing: missing.map(nameOf) };
  const unknown = applied.filter((migration) => !known.has(migration));
  if (unknown.length > 0) return { kind: "ahead", unknown: unknown.map(nameOf) };
  return { kind: "current", applied: known.size };
}

/** What to do about a database whose history is not ours. */
export function divergedAdvice({
  applied,
  committed,
}: {
  readonly applied: string;
  readonly committed: string;
}): string {
  return (
    `The database has ${applied} where ${committed} is here: it was committed again, or renumbered, after it was applied. ` +
    "Put the file back as the database has it, and write what is to change as a new migration."
  );
}

function nameOf({ history, name }: Pick<Migration, "history" | "name"> | AppliedMigration): string {
  return `${history}/${name}`;
}

function byName(one: AppliedMigration, other: AppliedMigration): number {
  return one.name < other.name ? -1 : 1;
}
