import type { CurrentFile } from "./current-files.ts";

/** The files of `current/` that become one migration: those without a transaction alone, the files between them together. */
export function groupIntoMigrations(files: readonly CurrentFile[]): CurrentFile[][] {
  const migrations: CurrentFile[][] = [];
  let group: CurrentFile[] | null = null;
  for (const file of files) {
    if (group && file.transaction && group[0]!.history === file.history) {
      group.push(file);
      continue;
    }
    const migration = [file];
    migrations.push(migration);
    group = file.transaction ? migration : null;
  }
  return migrations;
}
