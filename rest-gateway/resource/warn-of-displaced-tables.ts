import type { CatalogKeeper } from "../../engine/catalog/keep.ts";
import type { Logger } from "../../engine/log.ts";
import { displacedTables } from "./table-addresses.ts";

/** Logs which tables are at other addresses than those of their names, and again when others are. What it returns ends that. */
export function warnOfDisplacedTables(
  catalog: Pick<CatalogKeeper, "current" | "onChange">,
  log: Pick<Logger, "warn">,
): () => void {
  let known = "{}";
  const warn = () => {
    const displaced = displacedTables(catalog.current());
    const tables = Object.fromEntries(
      displaced.map(({ table, address }) => [`${table.schema}.${table.name}`, `/api/v1/${address}`]),
    );
    const text = JSON.stringify(tables);
    if (text !== known && displaced.length > 0) {
      log.warn({ tables }, "tables are at other addresses than those of their names, which older tables have");
    }
    known = text;
  };
  warn();
  return catalog.onChange(warn);
}
