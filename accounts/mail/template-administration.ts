import type { AsOwner } from "#postgres/database";
import { ApiError } from "#runtime";
import {
  compileTemplate,
  type RenderedTemplate,
  type TemplateSource,
  type TemplateValues,
} from "./compile-template.ts";
import type { MailName } from "./default-templates.ts";
import type { EmailQueue } from "./email-queue.ts";
import type { MailTemplate, MailTemplates } from "./mail-templates.ts";

/** The templates of e-mails, as administrators read and write them. */
export type TemplateAdministration = {
  list(): Promise<readonly MailTemplate[]>;
  /** Fails if a file is in force, which would be sent in place of the saved template. */
  save(name: MailName, source: TemplateSource, administrator: string | null): Promise<MailTemplate>;
  /** Deletes the saved template, so that the default one is sent; false if there is none. */
  delete(name: MailName, administrator: string | null): Promise<boolean>;
  /** Renders a template with the values of an example. */
  preview(source: TemplateSource): RenderedTemplate;
  /** Sends an example at once. Rejects if the server of e-mails refuses it. */
  sendSample(source: TemplateSource, to: string): Promise<void>;
};

type TemplateAdministrationOptions = {
  readonly asOwner: AsOwner;
  readonly templates: MailTemplates;
  /** Null if this deployment sends no e-mails. */
  readonly emailQueue: EmailQueue | null;
  readonly applicationUrl: () => string;
};

const MAX_SUBJECT = 500;
const MAX_PART = 30_000;

const SAVE = "select auth.save_email_template($1, $2, $3, $4, $5)";
const DELETE = "select auth.delete_email_template($1, $2) as deleted";

export function makeTemplateAdministration({
  asOwner,
  templates,
  emailQueue,
  applicationUrl,
}: TemplateAdministrationOptions): TemplateAdministration {
  const preview: TemplateAdministration["preview"] = (source) => {
    const checked = checkSource(source);
    try {
      return compileTemplate(checked)(exampleValues(applicationUrl()));
    } catch (error) {
      throw invalidTemplate(`The e-mail cannot be used: ${(error as Error).message}.`);
    }
  };
  return {
    preview,
    list: () => asOwner((client) => templates.list(client)),
    save(name, source, administrator) {
      preview(source);
      return asOwner(async (client) => {
        const { file } = await templates.find(client, name);
        if (file !== null) throw isFromFile(file);
        const { subject, html, text } = checkSource(source);
        await client.query(SAVE, [name, subject, html, text, administrator]);
        return templates.find(client, name);
      });
    },
    async delete(name, administrator) {
      const { rows } = await asOwner((client) => client.query<{ deleted: boolean }>(DELETE, [name, administrator]));
      return rows[0]!.deleted;
    },
    async sendSample(source, to) {
      if (!emailQueue) throw new ApiError("unavailable", "SERVICE_UNAVAILABLE", "This deployment sends no e-mails.");
      await emailQueue.sendNow({ to, ...preview(source) });
    },
  };
}

/** Returns the template as it is saved: an empty part is a missing one. */
function checkSource({ subject, html, text }: TemplateSource): TemplateSource {
  const source = { subject: subject.trim(), html: html?.trim() ? html : null, text: text?.trim() ? text : null };
  if (source.subject === "" || source.subject.length > MAX_SUBJECT)
    throw invalidTemplate(`The subject has 1 to ${MAX_SUBJECT} characters.`);
  if (source.html === null && source.text === null) throw invalidTemplate("The e-mail has neither HTML nor a text.");
  for (const part of [source.html, source.text]) {
    if ((part ?? "").length > MAX_PART)
      throw invalidTemplate(`The HTML and the text have at most ${MAX_PART} characters each.`);
  }
  return source;
}

function invalidTemplate(message: string): ApiError {
  return new ApiError("invalid", "VALIDATION_ERROR", message);
}

function isFromFile(file: string): ApiError {
  return new ApiError("conflict", "STATE_CONFLICT", `The file ${file} is in force.`, {
    hint: "Change the file, or delete it and restart the service to write this e-mail in Studio.",
  });
}

function exampleValues(applicationUrl: string): TemplateValues {
  return {
    ConfirmationURL: `${applicationUrl}/example-of-a-link`,
    Token: "123456",
    TokenHash: "example",
    SiteURL: applicationUrl,
    Email: "ada@example.org",
    NewEmail: "ada.new@example.org",
    Data: { name: "Ada Lovelace", first_name: "Ada" },
    RedirectTo: applicationUrl,
    Inviter: "Grace Hopper (grace@example.org)",
    Project: new URL(applicationUrl).host,
  };
}
