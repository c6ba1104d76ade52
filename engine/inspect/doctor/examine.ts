import { streamFindings } from "./change-stream.ts";
import { connectionFindings } from "./connection.ts";
import { exposureFindings } from "./exposure.ts";
import type { Facts } from "./facts.ts";
import type { Finding } from "./finding.ts";
import { hiddenRoutineFindings } from "./hidden-routines.ts";
import { indexFindings } from "./indexes.ts";
import { loginFindings } from "./login.ts";
import { policyFindings } from "./policies.ts";
import { replicaFindings } from "./replicas.ts";
import { roleFindings } from "./roles.ts";
import { routineFindings } from "./routines.ts";
import { serverFindings } from "./server.ts";
import { settingFindings } from "./settings.ts";
import { textBoundFindings } from "./text-bounds.ts";

const CHECKS = [
  loginFindings,
  roleFindings,
  connectionFindings,
  serverFindings,
  exposureFindings,
  routineFindings,
  hiddenRoutineFindings,
  replicaFindings,
  settingFindings,
  streamFindings,
  textBoundFindings,
  policyFindings,
  indexFindings,
];
const GRAVITY = ["danger", "advice", "slow"];

/** Everything that there is to mend, the gravest first. */
export function examine(facts: Facts): Finding[] {
  return byGravity(CHECKS.flatMap((check) => check(facts)));
}

export function byGravity(findings: readonly Finding[]): Finding[] {
  return findings.toSorted((a, b) => GRAVITY.indexOf(a.kind) - GRAVITY.indexOf(b.kind));
}
