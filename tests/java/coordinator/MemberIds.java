package org.apache.kafka.coordinator.group;

import java.util.ArrayDeque;
import java.util.Collection;
import java.util.Deque;

import net.bytebuddy.ByteBuddy;
import net.bytebuddy.agent.ByteBuddyAgent;
import net.bytebuddy.asm.Advice;
import net.bytebuddy.dynamic.loading.ClassReloadingStrategy;
import net.bytebuddy.matcher.ElementMatchers;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.coordinator.group.classic.ClassicGroup;

/** The ids that Kafka draws at random, drawn from a list instead, so that a run can be repeated and compared. */
public final class MemberIds {
    private static final Deque<String> GIVEN = new ArrayDeque<>();
    private static int drawn;

    private MemberIds() { }

    static void install() {
        ByteBuddyAgent.install();
        weave(ClassicGroup.class, "generateMemberId", ClassicIds.class);
        weave(Uuid.class, "randomUuid", ConsumerIds.class);
    }

    private static void weave(Class<?> target, String method, Class<?> advice) {
        new ByteBuddy().redefine(target).visit(Advice.to(advice).on(ElementMatchers.named(method))).make()
            .load(target.getClassLoader(), ClassReloadingStrategy.fromInstalledAgent());
    }

    static void reset(Collection<String> ids) {
        GIVEN.clear();
        GIVEN.addAll(ids);
        drawn = 0;
    }

    /** The given id of the step that runs now: it is drawn before all others. */
    static void addFirst(String id) {
        GIVEN.addFirst(id);
    }

    public static String next() {
        drawn++;
        return GIVEN.isEmpty() ? "id-" + drawn : GIVEN.removeFirst();
    }

    public static Uuid nextUuid() {
        return new NamedUuid(next());
    }

    /** A Uuid that prints as the id that was asked for. */
    private static final class NamedUuid extends Uuid {
        private final String name;

        NamedUuid(String name) {
            super(1L, 2L);
            this.name = name;
        }

        @Override
        public String toString() {
            return name;
        }
    }

    public static final class ClassicIds {
        @Advice.OnMethodExit
        static void exit(@Advice.Return(readOnly = false) String id) {
            id = MemberIds.next();
        }
    }

    public static final class ConsumerIds {
        @Advice.OnMethodExit
        static void exit(@Advice.Return(readOnly = false) Uuid id) {
            id = MemberIds.nextUuid();
        }
    }
}
