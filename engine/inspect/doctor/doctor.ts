import {
  exposureFindings,
  internalRoutineFindings,
  loginFindings,
  roleFindings,
  routineFindings,
  settingFindings,
} from "./access-checks.ts";
import type { DoctorFacts, DoctorFinding } from "./facts.ts";
import { connectionFindings, replicaFindings, replicationFindings, serverFindings } from "./server-checks.ts";
import { indexFindings, policyFindings, textBoundFindings } from "./table-checks.ts";

const CHECKS = [
  loginFindings,
  roleFindings,
  connectionFindings,
  serverFindings,
  exposureFindings,
  routineFindings,
  internalRoutineFindings,
  replicaFindings,
  settingFindings,
  replicationFindings,
  textBoundFindings,
  policyFindings,
  indexFindings,
];
const SEVERITIES = ["danger", "advice", "slow"];

/** Runs all checks. Returns the problems, the most severe first. */
export function runChecks(facts: DoctorFacts): DoctorFinding[] {
  return sortBySeverity(CHECKS.flatMap((check) => check(facts)));
}

export function sortBySeverity(findings: readonly DoctorFinding[]): DoctorFinding[] {
  return findings.toSorted((a, b) => SEVERITIES.indexOf(a.kind) - SEVERITIES.indexOf(b.kind));
}
