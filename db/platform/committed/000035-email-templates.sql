--! Previous: sha1:750fcc3ab3633b1c2a8a8bce2dc7fad0874c2af0
--! Hash: sha1:ecfc41f4c2ef78caefae20c08360eeb46178464e
--! Message: e-mail templates

-- E-mails that administrators have written in place of the default ones. They are in the database, so that all processes send the same.
create table auth.email_templates (
  name     text constraint content_service_email_templates_name_not_null not null
    constraint content_service_email_templates_name_check check (name in (
      'confirmation', 'invite', 'invitation', 'magic_link', 'recovery', 'email_change', 'reauthentication'
    )),
  subject  text constraint content_service_email_templates_subject_not_null not null
    constraint content_service_email_templates_subject_length check (length(subject) between 1 and 500),
  html     text constraint content_service_email_templates_html_max_length check (length(html) <= 30000),
  text     text constraint content_service_email_templates_text_max_length check (length(text) <= 30000),
  saved_by bigint,
  saved_at timestamptz constraint content_service_email_templates_saved_at_not_null not null default now(),
  constraint content_service_email_templates_pkey primary key (name),
  constraint content_service_email_templates_body_check check (num_nonnulls(html, text) > 0)
);
alter table auth.email_templates enable row level security;
comment on table auth.email_templates is e'@sample all\n@anonymize empty\nE-mails that administrators have written in place of the default ones.';
comment on column auth.email_templates.name is 'The e-mail, by the name of its template at Supabase.';
comment on column auth.email_templates.subject is 'The subject, with variables such as {{ .Email }}.';
comment on column auth.email_templates.html is 'The e-mail in HTML; null if it is sent as text alone.';
comment on column auth.email_templates.text is 'The e-mail as text; null if it is made from the HTML.';
comment on column auth.email_templates.saved_by is 'The administrator who saved it; null where nobody signs in.';
comment on column auth.email_templates.saved_at is 'When it was saved last.';

create function auth.save_email_template(name text, subject text, html text, text text, administrator bigint) returns auth.email_templates
language plpgsql set search_path = '' as $$
declare
  v_saved auth.email_templates;
begin
  if not auth.may_invite(administrator) then
    raise exception 'Only administrators may change e-mails' using errcode = '42501';
  end if;
  insert into auth.email_templates as template (name, subject, html, text, saved_by)
    values (save_email_template.name, save_email_template.subject, save_email_template.html, save_email_template.text, administrator)
    on conflict on constraint content_service_email_templates_pkey do update
    set subject = excluded.subject, html = excluded.html, text = excluded.text, saved_by = excluded.saved_by, saved_at = now()
    returning template.* into v_saved;
  return v_saved;
end;
$$;
comment on function auth.save_email_template is 'Saves or replaces the e-mail of that name.';

create function auth.delete_email_template(name text, administrator bigint) returns boolean
language plpgsql set search_path = '' as $$
begin
  if not auth.may_invite(administrator) then
    raise exception 'Only administrators may change e-mails' using errcode = '42501';
  end if;
  delete from auth.email_templates as template where template.name = delete_email_template.name;
  return found;
end;
$$;
comment on function auth.delete_email_template is 'Deletes the e-mail, so that the default one is sent again; false if there is none.';
