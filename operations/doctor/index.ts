export { collectFindings } from "./collect-findings.ts";
export type { DoctorFinding } from "./facts.ts";
