import type { ViewedToken } from "#operations/admin-types";
import { isJsonObject, readStoredJson, writeStoredJson } from "../stored-json.ts";
import { ServiceError, sendRequest } from "./http.ts";

/** A role, or the id of a user, with the text that names it. */
export type ViewChoice = {
  readonly subject: { readonly role: string } | { readonly user: string };
  /** The name of the role, or the e-mail address of a user. */
  readonly label: string;
};

/** Another caller whose rows are shown, with a token that the server has made for this purpose. */
export type ViewedCaller = ViewedToken & ViewChoice;

/** A choice that does not apply any more, and the reason. */
export type EndedView = { readonly label: string; readonly reason: string };

type TabChoice = { readonly choice: ViewChoice | null };

/** Different projects are served at the same address, one after the other. */
const storageKey = (project: string) => `studio.view-as.${project}`;

/** Returns the choice of this tab, which other tabs do not change; in a new tab the last choice of the browser. */
export function readViewChoice(project: string): ViewChoice | null {
  const ofTab = readStoredJson(storageKey(project), isTabChoice, "tab");
  return ofTab ? ofTab.choice : readStoredJson(storageKey(project), isViewChoice);
}

/** Stores the choice without its token; null forgets it. */
export function storeViewChoice(project: string, viewed: ViewChoice | null): void {
  const choice = viewed && { subject: viewed.subject, label: viewed.label };
  keepInTab(project, choice);
  writeStoredJson(storageKey(project), choice);
}

/** Stores the choice for this tab alone. */
export function keepInTab(project: string, choice: ViewChoice | null): void {
  writeStoredJson(storageKey(project), { choice } satisfies TabChoice, "tab");
}

export async function requestViewedCaller({ subject, label }: ViewChoice, token: string): Promise<ViewedCaller> {
  const response = await sendRequest("/admin/v1/view-as", { method: "POST", body: subject, token });
  return { ...((await response.json()) as ViewedToken), subject, label };
}

/** True if the service refuses the choice, such as a user who was deleted; false if it could not decide. */
export function isRefusedChoice(error: unknown): boolean {
  return error instanceof ServiceError && [400, 403, 404].includes(error.status);
}

function isViewChoice(stored: unknown): stored is ViewChoice {
  if (!isJsonObject(stored) || typeof stored.label !== "string" || !isJsonObject(stored.subject)) return false;
  const { role, user } = stored.subject;
  return typeof (role ?? user) === "string";
}

function isTabChoice(stored: unknown): stored is TabChoice {
  return isJsonObject(stored) && (stored.choice === null || isViewChoice(stored.choice));
}
