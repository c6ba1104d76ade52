import type pg from "pg";

/** Copies the files of a template: for a small database that takes a fifth of the processor time of writing each page to the WAL. */
export async function copyDatabase(owner: pg.ClientBase, name: string, template: string): Promise<void> {
  const { rows } = await owner.query<{ major: number }>(
    "select current_setting('server_version_num')::int / 10000 as major",
  );
  // Before 15 it is the only way, and has no name.
  const strategy = rows[0]!.major < 15 ? "" : "strategy file_copy";
  await owner.query(`create database ${name} template ${template} ${strategy}`);
}
