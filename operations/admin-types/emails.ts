/** An e-mail with variables; null is what is missing: the HTML, or a text that is made from the HTML. */
export type EmailSource = { readonly subject: string; readonly html: string | null; readonly text: string | null };

/** The response of `POST /email-templates/{name}`. */
export type EmailTemplate = EmailSource & {
  readonly name: string;
  /** Where the template in force is from. */
  readonly origin: "file" | "saved" | "default";
  /** The file in MAIL_TEMPLATES_DIR. */
  readonly file: string | null;
  /** The id of an administrator. */
  readonly saved_by: string | null;
  readonly saved_at: string | null;
};

/** The response of `GET /email-templates`. */
export type EmailTemplateList = {
  readonly templates: readonly EmailTemplate[];
  /** The names of the values that templates may have. */
  readonly variables: readonly string[];
};

/** The response of `POST /email-templates/{name}/preview`: the e-mail with the values of an example. */
export type EmailPreview = { readonly subject: string; readonly html: string | null; readonly text: string };
