export { type CatalogKeeper, type CatalogRefresh, keepCatalog, makeCatalogRefresh } from "./catalog-keeper.ts";
export { inSnapshot, queryWithoutKeepingLocks } from "./catalog-reader.ts";
export { type CatalogOptions, readCatalogRows } from "./catalog-rows.ts";
export { type ConfigKeeper, checkNamedFunctions, keepConfig, readDatabaseSettings } from "./config-keeper.ts";
export { assembleCatalog, loadCatalog } from "./load-catalog.ts";
export { missingTriggerSql } from "./schema-change-trigger.ts";
