import type { Config } from "../../engine/config/config.ts";
import type { Hits } from "../../engine/recent-map.ts";
import { makePreparer, type Preparer } from "../statement/prepare.ts";
import type { Deployment } from "./parse/request.ts";

/** What the settings say of reading requests. */
export function deploymentOf({ schemas, rootSpec, openapiMode, txEnd }: Config): Omit<Deployment, "timeZones"> {
  return {
    schemas,
    // The schema is that of the profile.
    rootFunction: rootSpec?.split(".").at(-1) ?? null,
    describesItself: openapiMode !== "disabled",
    txOverride: txEnd.endsWith("allow-override"),
  };
}

/** What they say of planning them. */
export function makeTablePreparer(config: Config, hits?: Hits): Preparer {
  const { aggregates, maxRows, safeWrites, legacyTargetNames, planEnabled } = config;
  return makePreparer({ aggregates, maxRows, safeWrites, legacyTargetNames, explain: planEnabled }, hits);
}
