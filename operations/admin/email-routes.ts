import { isMailName, type MailName, type MailTemplate, TEMPLATE_VARIABLES } from "#accounts/mail";
import { jsonResponse } from "#http";
import type { EmailPreview, EmailTemplate, EmailTemplateList } from "#operations/admin-types";
import { OPTIONAL_TEXT, readFields, TEXT } from "#rest-gateway/sign-in";
import { resourceNotFound } from "./admin-errors.ts";
import { type AdminRoutes, type AdminServices, NO_CONTENT } from "./admin-request.ts";
import { sendSample } from "./send-sample.ts";

const SOURCE_FIELDS = { subject: TEXT, html: OPTIONAL_TEXT, text: OPTIONAL_TEXT };

/** The e-mails that the service sends, which administrators may write in place of the default ones. */
export function emailRoutes({ accounts }: Pick<AdminServices, "accounts">): AdminRoutes {
  const requireTemplates = () => {
    if (!accounts?.templateAdministration) throw resourceNotFound("This database has no accounts.");
    return accounts.templateAdministration;
  };
  return {
    "GET /email-templates": async () => {
      const templates = await requireTemplates().list();
      const list: EmailTemplateList = { templates: templates.map(toEmailTemplate), variables: TEMPLATE_VARIABLES };
      return jsonResponse(200, list);
    },
    "POST /email-templates/{name}": async ({ request, userId, logEvent }) => {
      const name = readMailName(request.parameters.name);
      const source = await readFields(request, SOURCE_FIELDS);
      const templates = requireTemplates();
      templates.preview(source);
      await logEvent("studio.email_template_saved", { name });
      return jsonResponse(200, toEmailTemplate(await templates.save(name, source, userId)));
    },
    "DELETE /email-templates/{name}": async ({ request, userId, logEvent }) => {
      const name = readMailName(request.parameters.name);
      const templates = requireTemplates();
      await logEvent("studio.email_template_deleted", { name });
      if (!(await templates.delete(name, userId))) throw resourceNotFound("No e-mail of this name is saved.");
      return NO_CONTENT;
    },
    "POST /email-templates/{name}/preview": async ({ request }) => {
      readMailName(request.parameters.name);
      const source = await readFields(request, SOURCE_FIELDS);
      const { subject, html = null, text } = requireTemplates().preview(source);
      const preview: EmailPreview = { subject, html, text };
      return jsonResponse(200, preview);
    },
    "POST /email-templates/{name}/sample": async ({ request, logEvent }) => {
      const name = readMailName(request.parameters.name);
      const { email, ...source } = await readFields(request, { ...SOURCE_FIELDS, email: TEXT });
      const templates = requireTemplates();
      templates.preview(source);
      await logEvent("studio.email_sample_sent", { name, email });
      await sendSample(email, (to) => templates.sendSample(source, to));
      return NO_CONTENT;
    },
  };
}

function readMailName(name = ""): MailName {
  if (!isMailName(name)) throw resourceNotFound("There is no e-mail of this name.");
  return name;
}

function toEmailTemplate({ savedBy, savedAt, ...template }: MailTemplate): EmailTemplate {
  const { name, subject, html, text, origin, file } = template;
  return { name, subject, html, text, origin, file, saved_by: savedBy, saved_at: savedAt?.toISOString() ?? null };
}
