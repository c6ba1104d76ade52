export { TEMPLATE_VARIABLES, type TemplateSource } from "./compile-template.ts";
export { isMailName, type MailName } from "./default-templates.ts";
export { EmailQueue, MessageQueue } from "./email-queue.ts";
export { type MailTemplate, type MailTemplates, readMailTemplates } from "./mail-templates.ts";
export { checkMailFolder, keepsEmails, makeMailer, RecentEmails, type SentEmail } from "./mailer.ts";
export { makeTextMessageGateway, type TextMessage } from "./text-message-gateway.ts";
