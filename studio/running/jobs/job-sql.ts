import { quoteName, quoteText } from "../../sql-text.ts";

export const WEBHOOK_EVENTS = ["INSERT", "UPDATE", "DELETE"] as const;

/** A row of `api.webhooks`. The database fills in empty texts. */
export type WebhookForm = {
  readonly name: string;
  readonly table_name: string;
  readonly events: readonly string[];
  readonly where: string;
  readonly url: string;
  readonly role: string;
  readonly claims: string;
  readonly max_attempts: string;
  readonly timeout: string;
};

export const NEW_WEBHOOK: WebhookForm = {
  ...{ name: "", table_name: "", events: WEBHOOK_EVENTS, where: "", url: "", role: "service_role", claims: "" },
  ...{ max_attempts: "", timeout: "" },
};

/** A row of `api.schedules`. */
export type ScheduleForm = {
  readonly name: string;
  readonly cron: string;
  readonly time_zone: string;
  readonly function: string;
  readonly arguments: string;
  readonly role: string;
  readonly claims: string;
  readonly time_limit: string;
  readonly catch_up: boolean;
};

export const NEW_SCHEDULE: ScheduleForm = {
  ...{ name: "", cron: "", time_zone: "UTC", function: "", arguments: "", role: "service_role", claims: "" },
  ...{ time_limit: "", catch_up: false },
};

export type JobKind = "webhook" | "schedule";

const TABLES: Readonly<Record<JobKind, string>> = { webhook: "api.webhooks", schedule: "api.schedules" };

type Value = string | boolean | readonly string[];

/** Returns the statement that inserts a row, or changes the row of this name. */
export function saveJob(kind: JobKind, form: WebhookForm | ScheduleForm, before: string | null): string {
  const values = Object.entries(form).map(([name, value]) => [quoteName(name), sqlOf(value)] as const);
  if (before !== null) {
    const changes = values.map(([name, value]) => `${name} = ${value}`).join(",\n  ");
    return `update ${TABLES[kind]} set\n  ${changes}\nwhere name = ${quoteText(before)};`;
  }
  const given = values.filter(([, value]) => value !== "default");
  const names = given.map(([name]) => name).join(", ");
  const returning = kind === "webhook" ? "\nreturning secret" : "";
  return `insert into ${TABLES[kind]} (${names})\nvalues (${given.map(([, value]) => value).join(", ")})${returning};`;
}

function sqlOf(value: Value): string {
  if (typeof value === "boolean") return String(value);
  if (typeof value !== "string") return quoteText(`{${value.join(",")}}`);
  return value.trim() === "" ? "default" : quoteText(value.trim());
}

/** Returns the statement that reads the row for the form, with all values as texts. */
export function readJob(kind: JobKind, name: string): string {
  return `select to_json(job) from ${TABLES[kind]} as job where name = ${quoteText(name)}`;
}

export function enableJob(kind: JobKind, name: string, isEnabled: boolean): string {
  return `update ${TABLES[kind]} set is_enabled = ${isEnabled} where name = ${quoteText(name)};`;
}

export function deleteJob(kind: JobKind, name: string): string {
  return `delete from ${TABLES[kind]} where name = ${quoteText(name)};`;
}

export function runSchedule(name: string): string {
  return `select api.run_schedule(${quoteText(name)});`;
}

export function replayWebhook(name: string): string {
  return `select api.replay_webhook_deliveries(${quoteText(name)});`;
}

/** Returns the fields of a form from the JSON of its row. */
export function formOf<Form extends WebhookForm | ScheduleForm>(
  empty: Form,
  row: Readonly<Record<string, unknown>>,
): Form {
  const fields = Object.entries(empty).map(([name, fallback]) => {
    const value = row[name];
    if (value === null || value === undefined) return [name, typeof fallback === "string" ? "" : fallback];
    if (typeof fallback !== "string") return [name, value];
    return [name, typeof value === "object" ? JSON.stringify(value) : String(value)];
  });
  return Object.fromEntries(fields) as Form;
}
