// Benchmarks backups: random schemas restored on each version of Postgres, and the speed and memory of a large one beside pg_dump.
// Also benchmarks branches of a large database.

import { wordsOfSql } from "../test/sql-texts.ts";
import { type MeasuredBackup, type MeasuredProgram, measureBackup } from "./archives/backup-speed.ts";
import { type MeasuredBranch, type MeasuredBranches, measureBranches } from "./archives/branch-speed.ts";
import { type ComparedSchemas, compareSchemas } from "./archives/random-schemas.ts";
import type { Bench, BenchOptions } from "./measuring/kind.ts";

/** The newest version of which Debian has a pg_dump. */
const SPEED_VERSION = 15;
const MOST_MEBIBYTES = 256;
const LEAST_SHARE_OF_PG_DUMP = 0.5;

export const bench: Bench = async (options) => {
  const runs = (part: string) => options.only.length === 0 || options.only.includes(part);
  const compared = runs("schemas") ? await compareOnEach(options) : [];
  const measured = runs("speed") ? await measureSpeed(options) : null;
  const branches = runs("branch") ? await measureCopies(options) : null;
  const differs = compared.some(({ difference }) => difference !== null);
  return { compared, measured, branches, isMissed: differs || (measured !== null && isTooSlowOrLarge(measured)) };
};

async function compareOnEach({ versions, schemas, seed, print }: BenchOptions): Promise<ComparedSchemas[]> {
  const names = wordsOfSql();
  print(
    `archives: ${schemas} random schemas from seed ${seed}, named as ${names.words.length} words of our SQL, restored and compared`,
  );
  const compared: ComparedSchemas[] = [];
  for (const version of versions) {
    const result = await compareSchemas(version, { schemas, seed, names });
    compared.push(result);
    const beside = result.hasPgDump ? "rows, definitions and pg_dump" : "rows and definitions";
    print(
      `  Postgres ${result.version}: ${result.difference ? `DIFFERS: ${result.difference}` : `0 differences (${beside})`}`,
    );
  }
  return compared;
}

async function measureSpeed({ megabytes, print }: BenchOptions): Promise<MeasuredBackup> {
  print(`archives: a backup of a database of about ${megabytes} MB, and pg_dump -Fc`);
  const measured = await measureBackup(SPEED_VERSION, megabytes);
  print(`  backup       ${describe(measured.backup)}`);
  if (measured.pgDump) print(`  pg_dump -Fc  ${describe(measured.pgDump)}`);
  return measured;
}

async function measureCopies({ megabytes, print }: BenchOptions): Promise<MeasuredBranches> {
  print(`archives: branches of a database of about ${megabytes} MB in the embedded Postgres`);
  const measured = await measureBranches(megabytes);
  const { bytes, copied, readySeconds, read, sampled } = measured;
  print(
    `  the database has ${(bytes / 1e6).toFixed(0)} MB; a service on it is ready after ${readySeconds.database.toFixed(1)} s`,
  );
  print(
    `  while nobody uses it: ${describeBranch(copied)}; a service on it is ready after ${readySeconds.branch.toFixed(1)} s`,
  );
  print(`  while a service uses it: ${describeBranch(read)}; ${describeBranch(sampled)}`);
  return measured;
}

function describeBranch({ copy, seconds }: MeasuredBranch): string {
  return `branch (${copy}) after ${seconds.toFixed(1)} s`;
}

function describe({ seconds, mebibytes, fileBytes }: MeasuredProgram): string {
  return `${seconds.toFixed(1)} s, at most ${mebibytes.toFixed(0)} MiB, a file of ${(fileBytes / 1e6).toFixed(0)} MB`;
}

function isTooSlowOrLarge({ backup, pgDump }: MeasuredBackup): boolean {
  const share = pgDump ? pgDump.seconds / backup.seconds : 1;
  return backup.mebibytes > MOST_MEBIBYTES || share < LEAST_SHARE_OF_PG_DUMP;
}
