import { streamFindings } from "./change-stream.ts";
import { exposureFindings } from "./exposure.ts";
import type { Facts } from "./facts.ts";
import type { Finding } from "./finding.ts";
import { indexFindings } from "./indexes.ts";
import { loginFindings } from "./login.ts";
import { policyFindings } from "./policies.ts";
import { routineFindings } from "./routines.ts";
import { settingFindings } from "./settings.ts";

const CHECKS = [
  loginFindings,
  exposureFindings,
  routineFindings,
  settingFindings,
  streamFindings,
  policyFindings,
  indexFindings,
];
const GRAVITY = ["danger", "advice", "slow"];

/** Everything that there is to mend, the gravest first. */
export function examine(facts: Facts): Finding[] {
  return CHECKS.flatMap((check) => check(facts)).sort((a, b) => GRAVITY.indexOf(a.kind) - GRAVITY.indexOf(b.kind));
}
