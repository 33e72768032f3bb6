// About this run: what was recorded and what was not, the observer's cost, and what the words mean.
import type { PageData } from '../page.ts';
import { Fact, HowToRead, figure } from '../parts.tsx';
import { say, told } from '../text.ts';

export function AboutView({ about }: { about: PageData['about'] }) {
  return (
    <div class="about">
      <div class="bar"><HowToRead view="about" /></div>
      {about.map(({ title, facts }) => (
        <section>
          <h3>{told(title)}</h3>
          <dl>
            {facts.map(({ label, value }) => (
              <Fact label={told(label)} value={value !== null && typeof value === 'object' ? told(value) : figure(label.id, value)} />
            ))}
          </dl>
        </section>
      ))}
      <section>
        <h3>{say('page.glossary')}</h3>
        <dl class="glossary">
          {['step', 'self', 'total', 'exposed', 'idle', 'share', 'gain', 'confidence', 'ledger'].map(word => (
            <div><dt>{say(`page.glossary.${word}`)}</dt><dd>{say(`page.glossary.${word}.means`)}</dd></div>
          ))}
        </dl>
      </section>
    </div>
  );
}
