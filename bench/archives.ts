// Backups: random schemas restored on each version of Postgres, and the speed and memory of a large one beside pg_dump.

import { wordsOfSql } from "../test/sql-texts.ts";
import { type ComparedSchemas, compareSchemas } from "./archives/random-schemas.ts";
import type { Bench } from "./bench.ts";

export const bench: Bench = async ({ versions, schemas, seed, only, print }) => {
  const runs = (part: string) => only.length === 0 || only.includes(part);
  const compared: ComparedSchemas[] = [];
  if (runs("schemas")) {
    const names = wordsOfSql();
    print(
      `archives: ${schemas} random schemas from seed ${seed}, named as ${names.words.length} words of our SQL, restored and compared`,
    );
    for (const version of versions) {
      const result = await compareSchemas(version, { schemas, seed, names });
      compared.push(result);
      const beside = result.hasPgDump ? "rows, definitions and pg_dump" : "rows and definitions";
      print(
        `  Postgres ${result.version}: ${result.difference ? `DIFFERS: ${result.difference}` : `0 differences (${beside})`}`,
      );
    }
  }
  return { compared, isMissed: compared.some(({ difference }) => difference !== null) };
};
