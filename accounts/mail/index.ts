export { EmailQueue, MessageQueue } from "./email-queue.ts";
export { readMailTemplates, type WriteMail } from "./mail-templates.ts";
export { checkMailFolder, keepsEmails, makeMailer, RecentEmails, type SentEmail } from "./mailer.ts";
export { makeTextMessageGateway, type TextMessage } from "./text-message-gateway.ts";
