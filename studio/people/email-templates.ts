import type { EmailPreview, EmailSource, EmailTemplate, EmailTemplateList } from "#operations/admin-types";
import { adminCall } from "../api/admin.ts";
import { request } from "../api/client.ts";

const pathOf = (name: string) => `/email-templates/${encodeURIComponent(name)}` as const;

export function listEmailTemplates(signal: AbortSignal): Promise<EmailTemplateList> {
  return adminCall("GET /email-templates", { signal });
}

export function saveEmailTemplate(name: string, source: EmailSource): Promise<EmailTemplate> {
  return adminCall(`POST ${pathOf(name)}`, { body: source });
}

export async function deleteEmailTemplate(name: string): Promise<void> {
  await request(`/admin/v1${pathOf(name)}`, { method: "DELETE", as: "administrator" });
}

export function previewEmail(name: string, source: EmailSource, signal: AbortSignal): Promise<EmailPreview> {
  return adminCall(`POST ${pathOf(name)}/preview`, { body: source, signal });
}

export async function sendSampleEmail(name: string, source: EmailSource, email: string): Promise<void> {
  await request(`/admin/v1${pathOf(name)}/sample`, { method: "POST", body: { ...source, email }, as: "administrator" });
}
