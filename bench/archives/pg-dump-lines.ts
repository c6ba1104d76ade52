import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";

const INSERT = /^INSERT INTO [\s\S]*?\);$/gm;

/**
 * The lines that `pg_dump` of a folder writes of a database, sorted, because grants and rows have no particular order. A table that
 * inherits has the columns of its parent first after a restore, so an insert is compared by its words.
 */
export async function pgDumpLines(folder: string, url: string): Promise<string[]> {
  const words = ["--inserts", "--column-inserts", "--rows-per-insert=1", url];
  const { stdout } = await promisify(execFile)(join(folder, "pg_dump"), words, { maxBuffer: 1e8 });
  // A table that inherits may have its columns in another order, and values may have several lines.
  const others = stdout.replaceAll(INSERT, "");
  const inserts = (stdout.match(INSERT) ?? []).map((statement) =>
    statement
      .split(/[\s(),]+/)
      .sort()
      .join(" "),
  );
  const lines = others.split("\n").filter((line) => !/^\\(un)?restrict /.test(line));
  return [...inserts, ...lines.map((line) => line.replace(/,$/, ""))].sort();
}
